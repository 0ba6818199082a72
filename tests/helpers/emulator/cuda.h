// Enough of CUDA to run a kernel on a CPU: the threads of a block are contexts that take turns at every barrier.
// Blocks run one after the other, so that __shared__ variables may be static ones.
#include <ucontext.h>

#include <cmath>
#include <cstdio>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#define __global__
#define __device__
#define __forceinline__ inline
#define __noinline__
#define __shared__ static
#define __constant__ static
#define __restrict__
#define __launch_bounds__(...)
#define __align__(n) alignas(n)
#define EMULATED 1

struct dim3 { int x, y, z; };
struct float2 { float x, y; };
struct float4 { float x, y, z, w; };
struct uint2 { unsigned x, y; };
struct uint4 { unsigned x, y, z, w; };
static dim3 blockIdx, gridDim;

namespace emulator {
enum State { READY, AT_WARP, AT_BLOCK, AT_NAMED, DONE };
struct Thread { ucontext_t context; State state; int barrier; std::vector<char> stack; };
static std::vector<Thread> threads;
static ucontext_t scheduler;
static int current;
static void (*body)();
static int arrived[16];  // threads at each of the barriers that a part of the threads has

static void wait(State barrier) {
  const int me = current;
  threads[me].state = barrier;
  swapcontext(&threads[me].context, &scheduler);
}
// bar.arrive and bar.sync: the barrier lets those who wait pass once so many threads have come.
static void announce(int barrier, int count) {
  if (++arrived[barrier] < count) return;
  arrived[barrier] = 0;
  for (auto& thread : threads)
    if (thread.state == AT_NAMED && thread.barrier == barrier) thread.state = READY;
}
static void meet(int barrier, int count) {
  const int me = current;
  threads[me].barrier = barrier;
  threads[me].state = AT_NAMED;
  announce(barrier, count);
  if (threads[me].state == AT_NAMED) swapcontext(&threads[me].context, &scheduler);
}
static void begin() {
  body();
  threads[current].state = DONE;
  swapcontext(&threads[current].context, &scheduler);
}
// Threads [first, last) that have not ended: do they all wait at this barrier?
static bool all_at(int first, int last, State barrier) {
  bool any = false;
  for (int t = first; t < last; t++) {
    if (threads[t].state == DONE) continue;
    if (threads[t].state != barrier) return false;
    any = true;
  }
  return any;
}
static void release(int first, int last) {
  for (int t = first; t < last; t++)
    if (threads[t].state != DONE) threads[t].state = READY;
}
static void run_block(int count) {
  threads.resize(count);
  memset(arrived, 0, sizeof(arrived));
  for (auto& thread : threads) {
    thread.stack.resize(1 << 18);
    getcontext(&thread.context);
    thread.context.uc_stack.ss_sp = thread.stack.data();
    thread.context.uc_stack.ss_size = thread.stack.size();
    thread.context.uc_link = &scheduler;
    thread.state = READY;
    makecontext(&thread.context, begin, 0);
  }
  for (bool busy = true; busy;) {
    busy = false;
    for (int t = 0; t < count; t++)
      if (threads[t].state == READY) {
        busy = true;
        current = t;
        swapcontext(&scheduler, &threads[t].context);
      }
    for (int warp = 0; warp < count; warp += 32)
      if (all_at(warp, warp + 32 < count ? warp + 32 : count, AT_WARP)) {
        release(warp, warp + 32 < count ? warp + 32 : count);
        busy = true;
      }
    if (all_at(0, count, AT_BLOCK)) {
      release(0, count);
      busy = true;
    }
  }
  for (auto& thread : threads)
    if (thread.state != DONE) {
      fprintf(stderr, "emulator: threads wait at different barriers\n");
      abort();
    }
}
}  // namespace emulator

struct ThreadIndex { operator dim3() const { return {emulator::current, 0, 0}; } };
#define threadIdx (dim3{emulator::current, 0, 0})

static void __syncthreads() { emulator::wait(emulator::AT_BLOCK); }
static void __syncwarp(unsigned = ~0u) { emulator::wait(emulator::AT_WARP); }

template <class T> static T min(T a, T b) { return a < b ? a : b; }
template <class T> static T max(T a, T b) { return a > b ? a : b; }
template <class T> static T __ldg(const T* at) { return *at; }
template <class T> static T atomicAdd(T* at, T value) { T old = *at; *at += value; return old; }
template <class T> static T atomicMax(T* at, T value) { T old = *at; if (value > old) *at = value; return old; }
template <class T> static T atomicOr(T* at, T value) { T old = *at; *at |= value; return old; }

namespace emulator { static unsigned long long slots[1024]; }
// Every thread of a warp gives a value and reads another's.
template <class T> static T exchange(T value, int from) {
  const int me = emulator::current;
  memcpy(&emulator::slots[me], &value, sizeof(T));
  __syncwarp();
  T found;
  memcpy(&found, &emulator::slots[from], sizeof(T));
  __syncwarp();
  return found;
}
template <class T> static T __shfl_xor_sync(unsigned, T value, int mask) {
  return exchange(value, emulator::current ^ mask);
}
template <class T> static T __shfl_sync(unsigned, T value, int lane) {
  return exchange(value, (emulator::current & ~31) | (lane & 31));
}
static bool __any_sync(unsigned, bool value) {
  int any = value;
  for (int mask = 16; mask; mask >>= 1) any |= __shfl_xor_sync(~0u, any, mask);
  return any;
}
static unsigned __ballot_sync(unsigned, bool value) {
  unsigned found = (unsigned)value << (emulator::current & 31);
  for (int mask = 16; mask; mask >>= 1) found |= __shfl_xor_sync(~0u, found, mask);
  return found;
}
static int __reduce_add_sync(unsigned, int value) {
  for (int mask = 16; mask; mask >>= 1) value += __shfl_xor_sync(~0u, value, mask);
  return value;
}
static int __reduce_max_sync(unsigned, int value) {
  for (int mask = 16; mask; mask >>= 1) value = max(value, __shfl_xor_sync(~0u, value, mask));
  return value;
}
static int __reduce_min_sync(unsigned, int value) { return ~__reduce_max_sync(~0u, ~value); }
static int __popc(unsigned x) { return __builtin_popcount(x); }
static int __ffs(unsigned x) { return __builtin_ffs(x); }
static int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
static int __clzll(unsigned long long x) { return x ? __builtin_clzll(x) : 64; }
static float __int_as_float(int x) { float f; memcpy(&f, &x, 4); return f; }
static int __float_as_int(float f) { int x; memcpy(&x, &f, 4); return x; }
static float __uint_as_float(unsigned x) { float f; memcpy(&f, &x, 4); return f; }
static unsigned __float_as_uint(float f) { unsigned x; memcpy(&x, &f, 4); return x; }
