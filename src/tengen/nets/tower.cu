// A whole residual tower, from the input planes to the neck, as one program for Hopper GPUs: the activations of a few
// boards stay in shared memory, weights pass by, and tensor cores (wgmma) multiply. See nets/tower.py for the arguments.
//
// A block of threads has 384 rows of activations, one for each point of its boards and some empty ones: every line of a
// board ends with an empty point, and every board with an empty line. So the neighbours of a point are a fixed number of rows away,
// and those off the board are empty, which means zero. A convolution is then nine products of matrices, whose left
// operand begins at another row each time. Three warpgroups multiply, two tiles of 64 rows each. The weights of a place,
// or part of them, are a stage; one more thread fetches them, a few stages ahead.
//
// Defined by the caller: HEIGHT and WIDTH of the board, INPUTS and CHANNELS, POOLED channels (0: none), OUTPUTS of the neck,
// ACTIVATION (0 relu, 1 mish, 2 silu), SIDE of the board as a pool is scaled, LAYERS and KINDS (of each layer, as below), BATCH,
// GROUPS of boards (1 or 2), DEPTH (stages), SLICES (of 16 inputs in a stage, at most) and SHARED (bytes of shared memory).

enum Kind { STEM, FIRST, SECOND, POOLING, SECOND_POOLED, NECK };

constexpr int WARPGROUPS = 3, TILES = 2, WORKERS = WARPGROUPS * 128, ALL_TILES = WARPGROUPS * TILES;
constexpr int ALL_ROWS = ALL_TILES * 64, THREADS = WORKERS + 128;
constexpr int STRIDE = WIDTH + 1, HALO = STRIDE + 1, PITCH = (HEIGHT + 1) * STRIDE;
constexpr int LENGTH = (HEIGHT - 1) * STRIDE + WIDTH;  // rows from the first point of a board to its last
constexpr int GROUP_ROWS = ALL_ROWS / GROUPS;  // the last board of a group needs no empty line
constexpr int IN_GROUP = (GROUP_ROWS - LENGTH) / PITCH + 1, BOARDS = GROUPS * IN_GROUP;
constexpr int ROWS = HALO + GROUPS * (GROUP_ROWS + HALO), POINTS = HEIGHT * WIDTH;
constexpr int SLICE = 16 * CHANNELS;  // numbers
constexpr int REGULAR = CHANNELS - POOLED, SUMS = CHANNELS / 2;
static_assert(LENGTH <= GROUP_ROWS, "a board fits");
static_assert(OUTPUTS <= CHANNELS && INPUTS <= CHANNELS, "nothing is wider than the tower");

// In shared memory. Eight channels of a row are 16 bytes, the unit of the tensor cores.
struct Shared {
  alignas(128) bf16 stages[DEPTH][SLICES * SLICE];
  alignas(128) bf16 rows[CHANNELS / 8][ROWS][8];
  bf16 stream[CHANNELS / 8][BOARDS * POINTS][8];  // the residual stream
#if POOLED
  union {
    struct { float sum[WORKERS], largest[WORKERS]; } part;
    float bias[BOARDS * REGULAR];
  };
  float pool[BOARDS][3 * POOLED];
#endif
  alignas(8) float numbers[2 * CHANNELS];  // of the layer: scale and offset, or the bias
  alignas(8) unsigned long long full[DEPTH], empty[DEPTH];
};

static_assert(sizeof(Shared) <= SHARED, "as nets/tower.py counts it");

__constant__ u8 kinds[LAYERS] = KINDS;
__device__ inline int taps_of(int kind) { return kind == NECK ? 1 : 9; }
__device__ inline int slices_of(int kind) {
  return (kind == STEM ? INPUTS : kind == SECOND_POOLED ? (REGULAR + 31) / 32 * 32 : CHANNELS) / 16;
}

__device__ inline u32 two(float low, float high) {
#ifdef EMULATED
  bf16 parts[2];
  from_float(low, parts[0]);
  from_float(high, parts[1]);
  return parts[0].bits | (u32)parts[1].bits << 16;
#else
  u32 both;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  return both;
#endif
}
__device__ inline float low(u32 both) { return __uint_as_float(both << 16); }
__device__ inline float high(u32 both) { return __uint_as_float(both & 0xFFFF0000u); }

// Two activated numbers.
__device__ inline u32 activated(float a, float b) {
#ifndef EMULATED
  if (ACTIVATION == 0) {
    u32 both;
    asm("cvt.rn.relu.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(b), "f"(a));
    return both;
  }
#endif
  return two(activate(a), activate(b));
}

#ifdef EMULATED
static Shared shared;
#define SHARED_MEMORY
inline void workers_sync() { __syncthreads(); }
inline void written_for_tensor_cores() {}

// Weights are read where they are: there is no pipeline to emulate.
struct Weights {
  const bf16* at;
  Weights(Shared&, const bf16* weights) : at(weights) {}
  const bf16* await() { return at; }
  void issued(int slices) { at += slices * SLICE; }
  void finished() {}
};
inline void begin_products() {}
inline void multiply(float (&sums)[SUMS], const bf16* a, const bf16* b, int keep) {
  const int lane = threadIdx.x % 32, row = threadIdx.x % 128 / 32 * 16 + lane / 4;
  for (int k = 0; k < SUMS; k++) {
    const int column = k / 4 * 8 + lane % 4 * 2 + k % 2;
    float sum = keep ? sums[k] : 0.0f;
    for (int i = 0; i < 16; i++)
      sum += to_float(a[(i / 8 * ROWS + row + k % 4 / 2 * 8) * 8 + i % 8]) *
             to_float(b[(i / 8 * CHANNELS + column) * 8 + i % 8]);
    sums[k] = sum;
  }
}
#else
#define SHARED_MEMORY                               \
  extern __shared__ __align__(128) char everything[]; \
  Shared& shared = *(Shared*)everything;

__device__ inline u32 address(const void* at) { return (u32)__cvta_generic_to_shared(at); }
__device__ inline void workers_sync() { asm volatile("bar.sync 1, %0;" ::"n"(WORKERS) : "memory"); }
// Tensor cores read shared memory by another path than ordinary stores write it.
__device__ inline void written_for_tensor_cores() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

__device__ inline void begin_barrier(unsigned long long* barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address(barrier)), "r"(arrivals) : "memory");
}
__device__ inline void await_barrier(unsigned long long* barrier, int phase) {
  asm volatile(
      "{\n.reg .pred done;\nAGAIN:\nmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@done bra.uni DONE;\nbra.uni AGAIN;\nDONE:\n}" ::"r"(address(barrier)), "r"(phase) : "memory");
}
__device__ inline void arrive(unsigned long long* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address(barrier)) : "memory");
}

// A place in the ring of stages.
struct Place {
  int stage = 0, phase = 0;
  __device__ void advance() {
    if (++stage == DEPTH) {
      stage = 0;
      phase ^= 1;
    }
  }
};

// Fetches all weights, each stage as soon as all warps have done with what it held before.
__device__ inline void fetch_weights(Shared& shared, const bf16* weights) {
  Place place;
  for (int layer = 0; layer < LAYERS; layer++)
    for (int tap = 0; tap < taps_of(kinds[layer]); tap++)
      for (int slice = 0, all = slices_of(kinds[layer]); slice < all; slice += SLICES) {
        const int size = (all - slice < SLICES ? all - slice : SLICES) * SLICE, bytes = size * sizeof(bf16);
        const u32 barrier = address(&shared.full[place.stage]);
        await_barrier(&shared.empty[place.stage], place.phase ^ 1);  // a new barrier has passed the phase before
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
        asm volatile(
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                address(shared.stages[place.stage])), "l"(weights), "r"(bytes), "r"(barrier) : "memory");
        weights += size;
        place.advance();
      }
}

// The stages in turn. The products of a stage are waited for once those of the next one are under way.
struct Weights {
  Shared& shared;
  Place place;
  int before = -1;
  __device__ Weights(Shared& all, const bf16*) : shared(all) {}
  __device__ const bf16* await() {
    await_barrier(&shared.full[place.stage], place.phase);
    return shared.stages[place.stage];
  }
  __device__ void issued(int) {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    if (before >= 0) {
      asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
      if (threadIdx.x % 32 == 0) arrive(&shared.empty[before]);
    }
    before = place.stage;
    place.advance();
  }
  __device__ void finished() {
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    if (threadIdx.x % 32 == 0) arrive(&shared.empty[before]);
    before = -1;
  }
};

__device__ inline void begin_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }

// Where a matrix is: eight rows of 16 bytes after each other, 128 bytes from eight rows to the next, and `next` rows from
// eight of the 16 inputs to the other eight.
__device__ inline unsigned long long matrix(const bf16* at, int next) {
  return (unsigned long long)(address(at) >> 4) | (unsigned long long)next << 16 | (unsigned long long)(128 >> 4) << 32;
}

#define F4(k) "+f"(sums[k]), "+f"(sums[k + 1]), "+f"(sums[k + 2]), "+f"(sums[k + 3])
#define F16(k) F4(k), F4(k + 4), F4(k + 8), F4(k + 12)
#define F32 F16(0), F16(16)
#define N32                                                                                           \
  "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26," \
  "%27,%28,%29,%30,%31"
#define N48 N32 ",%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47"
#define N64 N48 ",%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63"
#define PRODUCT(columns, names, a, b, keep)                                                  \
  "{\n.reg .pred p;\nsetp.ne.b32 p, " keep ", 0;\nwgmma.mma_async.sync.aligned.m64n" columns \
  "k16.f32.bf16.bf16 {" names "}, " a ", " b ", p, 1, 1, 0, 0;\n}"

// sums of 64 rows += rows * weights, for 16 inputs, or = if not `keep`.
__device__ inline void multiply(float (&sums)[SUMS], const bf16* a, const bf16* b, int keep) {
  const unsigned long long left = matrix(a, ROWS), right = matrix(b, CHANNELS);
#if CHANNELS == 96
  asm volatile(PRODUCT("96", N48, "%48", "%49", "%50") : F32, F16(32) : "l"(left), "l"(right), "r"(keep));
#elif CHANNELS == 128
  asm volatile(PRODUCT("128", N64, "%64", "%65", "%66") : F32, F16(32), F16(48) : "l"(left), "l"(right), "r"(keep));
#endif
}
#endif

// One of the rows that a thread has sums of, two in each tile.
struct Row {
  int row;    // in `Shared::rows`
  int point;  // in `Shared::stream`: of all points of the block's boards; -1: an empty row
};

__device__ inline Row row_of(int tile, int row, int boards) {
  constexpr int IN = ALL_TILES / GROUPS;  // tiles of a group
  const int place = tile % IN * 64 + row, within = place % PITCH, board = tile / IN * IN_GROUP + place / PITCH;
  const bool on = place / PITCH < IN_GROUP && within / STRIDE < HEIGHT && within % STRIDE < WIDTH && board < boards;
  return {HALO + tile / IN * (GROUP_ROWS + HALO) + place,
          on ? board * POINTS + within / STRIDE * WIDTH + within % STRIDE : -1};
}
__device__ inline int row_of_point(int board, int point) {
  return HALO + board / IN_GROUP * (GROUP_ROWS + HALO) + board % IN_GROUP * PITCH + point / WIDTH * STRIDE + point % WIDTH;
}

#if POOLED
// The bias of the regular channels of each board: their own, and what the pool of the others gives. Those lie after the
// regular ones in `rows`.
__device__ inline void pool_bias(Shared& shared, const float* numbers) {
  constexpr int PAIRS = BOARDS * POOLED, PARTS = WORKERS / PAIRS;
  static_assert(PARTS > 0, "a thread for each channel of each board");
  const int thread = threadIdx.x, pair = thread % PAIRS, channel = REGULAR + pair % POOLED, board = pair / POOLED;
  float sum = 0.0f, largest = -INFINITE;
  if (thread < PAIRS * PARTS)
#pragma unroll 8
    for (int point = thread / PAIRS; point < POINTS; point += PARTS) {
      const int row = row_of_point(board, point);
      const float value = to_float(shared.rows[channel / 8][row][channel % 8]);
      sum += value;
      largest = fmaxf(largest, value);
    }
  shared.part.sum[thread] = sum;
  shared.part.largest[thread] = largest;
  workers_sync();
  if (thread < PAIRS) {
    for (int part = 1; part < PARTS; part++) {
      sum += shared.part.sum[part * PAIRS + pair];
      largest = fmaxf(largest, shared.part.largest[part * PAIRS + pair]);
    }
    float* pool = shared.pool[board] + pair % POOLED;
    pool[0] = sum / POINTS;
    pool[POOLED] = sum / POINTS * (float)(SIDE);
    pool[2 * POOLED] = largest;
  }
  workers_sync();
  for (int output = thread; output < BOARDS * REGULAR; output += WORKERS) {
    const float *pool = shared.pool[output / REGULAR], *kernel = numbers + CHANNELS + output % REGULAR;
    float bias = __ldg(numbers + output % REGULAR);
#pragma unroll 8
    for (int k = 0; k < 3 * POOLED; k++) bias = fmaf(pool[k], __ldg(kernel + k * REGULAR), bias);
    shared.bias[output] = bias;
  }
  workers_sync();
}
#endif

// Fills all rows: with the inputs of the boards, and zeros elsewhere.
__device__ inline void begin_rows(Shared& shared, const bf16* x, long long first, int boards) {
  for (int k = threadIdx.x; k < CHANNELS / 8 * ROWS; k += THREADS) ((uint4*)shared.rows)[k] = {0, 0, 0, 0};
  __syncthreads();
  for (int k = threadIdx.x; k < boards * POINTS * (INPUTS / 8); k += THREADS) {
    const int group = k % (INPUTS / 8), point = k / (INPUTS / 8);
    *(uint4*)shared.rows[group][row_of_point(point / POINTS, point % POINTS)] =
        ((const uint4*)(x + (first * POINTS + point) * INPUTS))[group];
  }
  written_for_tensor_cores();
}

// Works on all layers.
__device__ inline void work(
    Shared& shared, const bf16* weights, const float* numbers, bf16* out, long long first, int boards) {
  const int thread = threadIdx.x, lane = thread % 32;
  Row rows[TILES][2];
  const bf16* begin[TILES];
#pragma unroll
  for (int k = 0; k < TILES; k++) {
    const int tile = k * WARPGROUPS + thread / 128;
    begin[k] = shared.rows[0][row_of(tile, 0, boards).row];
#pragma unroll
    for (int half = 0; half < 2; half++)
      rows[k][half] = row_of(tile, thread % 128 / 32 * 16 + lane / 4 + half * 8, boards);
  }
  Weights pipeline(shared, weights);
  float sums[TILES][SUMS];

  for (int layer = 0; layer < LAYERS; layer++) {
    const int kind = kinds[layer], taps = taps_of(kind), all = slices_of(kind);
    float* own = shared.numbers;
    const int needed = kind == NECK ? 0 : kind == FIRST || kind == POOLING ? CHANNELS : 2 * CHANNELS;
    for (int k = thread; k < needed; k += WORKERS) fetch((const int*)numbers + k, (int*)own + k);
    int keep = 0;
    for (int tap = 0; tap < taps; tap++) {
      const int shift = taps == 1 ? 0 : (tap / 3 - 1) * STRIDE + tap % 3 - 1;
      for (int from = 0; from < all; from += SLICES) {
        const bf16* stage = pipeline.await();
        begin_products();
#pragma unroll
        for (int slice = 0; slice < SLICES; slice++)
          if (slice < 2 || from + slice < all) {  // there are always two
#pragma unroll
            for (int tile = 0; tile < TILES; tile++)
              multiply(
                  sums[tile], begin[tile] + ((from + slice) * 2 * ROWS + shift) * 8, stage + slice * SLICE, keep);
            keep = 1;
          }
        pipeline.issued(all - from < SLICES ? all - from : SLICES);
      }
    }
    pipeline.finished();
    await_fetched();
    workers_sync();  // nobody reads the rows any more

    // Calls `of` with pairs of sums, of neighbouring channels from `from` to `to`, which it may change, and with what
    // `given` has for these channels. That is read before anything is written, or it would have to wait for that.
    const auto each = [&](int from, int to, const auto& given, const auto& of) {
      auto now = given(from + lane % 4 * 2);
#pragma unroll
      for (int group = 0; group < CHANNELS / 8; group++)
        if (group * 8 >= from && group * 8 < to) {
          const int channel = group * 8 + lane % 4 * 2;
          const auto next = given(group * 8 + 8 < to ? channel + 8 : channel);
#pragma unroll
          for (int tile = 0; tile < TILES; tile++)
#pragma unroll
            for (int half = 0; half < 2; half++) {
              float* sum = sums[tile] + group * 4 + half * 2;
              of(rows[tile][half], channel, sum[0], sum[1], now);
            }
          now = next;
        }
    };
    const auto nothing = [](int) { return 0; };
    const auto bias = [&](int channel) { return *(const float2*)(own + channel); };
    const auto put = [&](Row row, int channel, u32 both) {  // empty rows stay zero
      if (row.point >= 0) *(u32*)&shared.rows[channel / 8][row.row][channel % 8] = both;
    };
    if (kind == STEM || kind == SECOND || kind == SECOND_POOLED) {
      if (kind != STEM)
        each(0, CHANNELS, nothing, [&](Row row, int channel, float& a, float& b, int) {
          const u32 stream = row.point < 0 ? 0 : *(u32*)&shared.stream[channel / 8][row.point][channel % 8];
          a += low(stream);
          b += high(stream);
        });
      struct Affine { float2 scale, offset; };
      const auto affine = [&](int channel) { return Affine{bias(channel), bias(CHANNELS + channel)}; };
      each(0, CHANNELS, affine, [&](Row row, int channel, float& a, float& b, const Affine& by) {
        if (row.point >= 0) *(u32*)&shared.stream[channel / 8][row.point][channel % 8] = two(a, b);
        put(row, channel, activated(fmaf(a, by.scale.x, by.offset.x), fmaf(b, by.scale.y, by.offset.y)));
      });
      numbers += 2 * CHANNELS;
    } else if (kind == FIRST) {
      each(0, CHANNELS, bias, [&](Row row, int channel, float& a, float& b, float2 by) {
        put(row, channel, activated(a + by.x, b + by.y));
      });
      numbers += CHANNELS;
#if POOLED
    } else if (kind == POOLING) {
      each(REGULAR, CHANNELS, bias, [&](Row row, int channel, float& a, float& b, float2 by) {
        put(row, channel, activated(a + by.x, b + by.y));
      });
      workers_sync();
      pool_bias(shared, numbers);
      each(0, REGULAR, nothing, [&](Row row, int channel, float& a, float& b, int) {
        const float* by = shared.bias + (row.point < 0 ? 0 : row.point / POINTS) * REGULAR + channel;
        a += by[0];
        b += by[1];
      });
      each(0, REGULAR, nothing, [&](Row row, int channel, float& a, float& b, int) {
        put(row, channel, activated(a, b));
      });
      numbers += CHANNELS + 3 * POOLED * REGULAR;
#endif
    } else {
      each(0, CHANNELS, nothing, [&](Row row, int channel, float& a, float& b, int) { put(row, channel, two(a, b)); });
    }
    written_for_tensor_cores();
    workers_sync();
  }
  for (int k = thread; k < boards * POINTS * (OUTPUTS / 8); k += WORKERS) {
    const int group = k % (OUTPUTS / 8), point = k / (OUTPUTS / 8);
    ((uint4*)(out + (first * POINTS + point) * OUTPUTS))[group] =
        *(const uint4*)shared.rows[group][row_of_point(point / POINTS, point % POINTS)];
  }
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) tower(
    const bf16* x, const bf16* weights, const float* numbers, bf16* out) {
  SHARED_MEMORY
  const long long first = (long long)blockIdx.x * BOARDS;
  const int boards = BATCH - first < BOARDS ? BATCH - first : BOARDS;
#ifdef EMULATED
  begin_rows(shared, x, first, boards);
  __syncthreads();
  if (threadIdx.x < WORKERS) work(shared, weights, numbers, out, first, boards);
#else
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < DEPTH; stage++) {
      begin_barrier(&shared.full[stage], 1);
      begin_barrier(&shared.empty[stage], WORKERS / 32);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  begin_rows(shared, x, first, boards);
  __syncthreads();
  if (threadIdx.x < WORKERS) {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 160;");
    work(shared, weights, numbers, out, first, boards);
  } else {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
    if (threadIdx.x == WORKERS) fetch_weights(shared, weights);
  }
#endif
}
