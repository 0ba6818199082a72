// Precedes every program. TEAM threads work together: a warp or less than it, or several warps, which are then a block.

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef signed char i8;
typedef short i16;

#define INFINITE __int_as_float(0x7F800000)
constexpr float LARGEST_FLOAT = 3.402823466e+38f, TINIEST_FLOAT = 1.17549435e-38f;

#ifdef EMULATED
inline float half_to_float(u16 half) {
  const u32 sign = (half & 0x8000u) << 16, exponent = half >> 10 & 31, digits = half & 1023;
  if (exponent == 31) return __uint_as_float(sign | 0x7F800000u | digits << 13);
  if (exponent) return __uint_as_float(sign | (exponent + 112) << 23 | digits << 13);
  const float small = digits / 16777216.0f;
  return sign ? -small : small;
}
inline void fetch(const int* from, int* to) { *to = *from; }
inline void await_fetched() {}
#else
__device__ inline float half_to_float(u16 half) {
  float wide;
  asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(half));
  return wide;
}
// Copies to shared memory in the background, until the same thread calls await_fetched.
__device__ inline void fetch(const int* from, int* to) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"((u32)__cvta_generic_to_shared(to)), "l"(from) : "memory");
}
__device__ inline void await_fetched() { asm volatile("cp.async.wait_all;" ::: "memory"); }
#endif

struct bf16 { u16 bits; };

__device__ inline float to_float(bf16 x) { return __uint_as_float((u32)x.bits << 16); }
__device__ inline void from_float(float x, bf16& out) {
#ifdef EMULATED
  const u32 bits = __float_as_uint(x);
  out.bits = (bits & 0x7FFFFFFF) > 0x7F800000 ? 0x7FC0 : (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
#else
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(out.bits) : "f"(x));
#endif
}

#ifdef ACTIVATION  // 0 relu, 1 mish, 2 silu
__device__ inline float activate(float x) {
  if (ACTIVATION == 0) return fmaxf(x, 0.0f);
  if (ACTIVATION == 2) return x / (1.0f + expf(-x));
  if (x > 20.0f) return x;
  const float e = expf(x), n = e * (e + 2.0f);  // mish: x tanh(log(1 + e))
  return x * n / (n + 2.0f);
}
#endif

#ifdef TEAM
constexpr int TEAM_WARPS = (TEAM + 31) / 32;

__device__ inline void team_sync() {
  if (TEAM <= 32) __syncwarp(); else __syncthreads();
}

// A float as a whole number of the same order, and back: warps combine whole numbers by one instruction.
__device__ inline int ordered(int bits) { return bits ^ (bits >> 31 & 0x7FFFFFFF); }
__device__ inline int ordered(float value) { return ordered(__float_as_int(value)); }

struct Sum {
  __device__ static float of(float a, float b) { return a + b; }
  __device__ static float of_warp(float value) {
    for (int distance = 16; distance; distance >>= 1) value += __shfl_xor_sync(~0u, value, distance);
    return value;
  }
};
struct WholeSum {  // of whole numbers
  __device__ static float of(float a, float b) { return a + b; }
  __device__ static float of_warp(float value) { return __reduce_add_sync(~0u, (int)value); }
};
struct Largest {
  __device__ static float of(float a, float b) { return a > b ? a : b; }
  __device__ static float of_warp(float value) {
    return __int_as_float(ordered(__reduce_max_sync(~0u, ordered(value))));
  }
};

// Combines a value of every thread of the team; all threads get the result.
template <class Operation>
__device__ inline float team_reduce(float value) {
  value = Operation::of_warp(value);
  if (TEAM_WARPS > 1) {
    __shared__ float parts[TEAM_WARPS];
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
    __syncthreads();
    value = parts[0];
    for (int warp = 1; warp < TEAM_WARPS; warp++) value = Operation::of(value, parts[warp]);
    __syncthreads();
  }
  return value;
}

__device__ inline float team_sum(float value) { return team_reduce<Sum>(value); }
__device__ inline float team_count(float value) { return team_reduce<WholeSum>(value); }
__device__ inline float team_largest(float value) { return team_reduce<Largest>(value); }

struct Best {
  float score;
  int index;
  int extra;  // any number from -1 on that goes with the index
  __device__ void take(const Best& other) {
    if (other.score > score || (other.score == score && other.index < index)) *this = other;
  }
};

// The highest score of the team; of equal ones the one with the lowest index.
__device__ inline Best team_best(Best best) {
  const int score = ordered(best.score + 0.0f), highest = __reduce_max_sync(~0u, score);  // -0 equals 0
  const int index = __reduce_min_sync(~0u, score == highest ? best.index : 0x7FFFFFFF);
  const int extra = __reduce_max_sync(~0u, best.index == index ? best.extra : -1);
  best = {__int_as_float(ordered(highest)), index, extra};
  if (TEAM_WARPS > 1) {
    __shared__ Best parts[TEAM_WARPS];
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = best;
    __syncthreads();
    best = parts[0];
    for (int warp = 1; warp < TEAM_WARPS; warp++) best.take(parts[warp]);
    __syncthreads();
  }
  return best;
}
#endif
