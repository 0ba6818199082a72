// What programs for Hopper's tensor cores (wgmma) share that convolve boards in shared memory. See nets/tower.py for how they use memory.
//
// A block of threads has a row of activations for each point of its boards, and some empty ones: every line of a board
// ends with an empty point, and every board with an empty line. So the neighbours of a point are a fixed number of rows
// away, and those off the board are empty, which means zero. A convolution is then nine products of matrices, whose left
// operand begins at another row each time. The weights of a place, or part of them, are a stage; one more thread fetches
// them, a few stages ahead. A block works on one set of boards after the other, and weights keep coming.
//
// The rows are multiplied in tiles of 64. If TEAMS is 2, two warpgroups have half of the boards each, and the second one
// stays some stages behind the first, so that one multiplies while the other activates. Otherwise three warpgroups, with
// two tiles each, work on all boards together.
//
// Defined by the caller: HEIGHT and WIDTH of the board, CHANNELS, LINES (1: a tile is a board of 8 x 8), GROUPS of boards (1 or 2)
// that share the rows, TEAMS (1 or 2), TILES of a warpgroup, DEPTH (stages), LAG (stages between the teams),
// SLICES (of 16 inputs in a stage, at most) and ACTIVATION (0 relu, 1 mish, 2 silu).

constexpr int WARPGROUPS = TEAMS == 2 ? 2 : 3, ALL_ROWS = WARPGROUPS * TILES * 64;
constexpr int WORKERS = WARPGROUPS * 128, TEAM = WORKERS / TEAMS, THREADS = WORKERS + 128;
constexpr int STRIDE = WIDTH + 1, HALO = STRIDE + 1, PITCH = (HEIGHT + 1) * STRIDE, POINTS = HEIGHT * WIDTH;
// Tensor cores read units of eight rows. If these are the lines of a board, nothing empty is multiplied.
constexpr int STEP = LINES ? STRIDE : 8;  // rows from one unit to the next
constexpr int GROUP_ROWS = LINES ? ALL_ROWS / 64 * PITCH : ALL_ROWS / GROUPS;
constexpr int LENGTH = (HEIGHT - 1) * STRIDE + WIDTH;  // rows from the first point of a board to its last
constexpr int IN_GROUP = (GROUP_ROWS - LENGTH) / PITCH + 1;  // the last board of a group needs no empty line
constexpr int BOARDS = GROUPS * IN_GROUP, IN_TEAM = BOARDS / TEAMS;
constexpr int TRASH = HALO + GROUPS * (GROUP_ROWS + HALO), ROWS = TRASH + 1;  // one row takes what empty ones would get
constexpr int SLICE = 16 * CHANNELS;  // numbers
constexpr int SUMS = CHANNELS / 2, ALL_SLICES = CHANNELS / 16;
static_assert(LENGTH <= GROUP_ROWS, "a board fits");
static_assert(!LINES || HEIGHT == 8 && WIDTH == 8, "a tile is a board");
static_assert(DEPTH < 9, "the first team cannot be a whole convolution ahead");

// In shared memory: weights on their way.
struct Stages {
  alignas(128) bf16 of[DEPTH][SLICES * SLICE];
  alignas(8) unsigned long long full[DEPTH], empty[DEPTH];
};

// Slices in each stage of a layer that has `all`. They are equally many, because the products of a stage are one group for
// the tensor cores only if there is no branch between them.
__device__ constexpr int stage_of(int all) {
  int slices = all < SLICES ? all : SLICES;
  while (all % slices) slices--;
  return slices;
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
#ifdef EMULATED
inline float low(u32 both) { return __uint_as_float(both << 16); }
inline float high(u32 both) { return __uint_as_float(both & 0xFFFF0000u); }
#else
// Sums begin as such numbers. If the compiler knew how they are made, it would keep sums as whole numbers, and copy them
// between products, each of which would then have to end before the next.
__device__ inline float low(u32 both) {
  float number;
  asm("shl.b32 %0, %1, 16;" : "=f"(number) : "r"(both));
  return number;
}
__device__ inline float high(u32 both) {
  float number;
  asm("and.b32 %0, %1, 0xFFFF0000;" : "=f"(number) : "r"(both));
  return number;
}
#endif

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
#define SHARED_MEMORY static Shared shared;
inline void team_sync(int) { __syncthreads(); }
inline void written_for_tensor_cores() {}
inline void stay_apart(int, int) {}

// Weights are read where they are: there is no pipeline to emulate.
struct Weights {
  const bf16 *at, *begin;
  Weights(Stages&, const bf16* weights) : at(weights), begin(weights) {}
  const bf16* await() { return at; }
  void issued(int slices) { at += slices * SLICE; }
  void finished() {}
  void released(int numbers) { at += numbers; }
  void again() { at = begin; }
};
struct Fetching {
  Stages& stages;
  void stage(const bf16*&, int) {}
};
inline void begin_products() {}
inline void multiply(float (&sums)[SUMS], const bf16* a, const bf16* b, int keep) {
  const int lane = threadIdx.x % 32, row = threadIdx.x % 128 / 32 * 16 + lane / 4;
  for (int k = 0; k < SUMS; k++) {
    const int column = k / 4 * 8 + lane % 4 * 2 + k % 2;
    float sum = keep ? sums[k] : 0.0f;
    for (int i = 0; i < 16; i++)
      sum += to_float(a[(i / 8 * ROWS + (row / 8 + k % 4 / 2) * STEP + row % 8) * 8 + i % 8]) *
             to_float(b[(i / 8 * CHANNELS + column) * 8 + i % 8]);
    sums[k] = sum;
  }
}
template <int COUNT> inline void put_matrices(bf16* at, const u32 (&values)[4]) {
  for (int k = 0; k < COUNT; k++)
    *(u32*)(__shfl_sync(~0u, at, k * 8 + threadIdx.x % 32 / 4) + threadIdx.x % 4 * 2) = values[k];
}
inline void get_matrices(const bf16* at, u32 (&values)[4]) {
  for (int k = 0; k < 4; k++)
    values[k] = *(const u32*)(__shfl_sync(~0u, at, k * 8 + threadIdx.x % 32 / 4) + threadIdx.x % 4 * 2);
}
#else
#define SHARED_MEMORY                               \
  extern __shared__ __align__(128) char everything[]; \
  Shared& shared = *(Shared*)everything;

__device__ inline u32 address(const void* at) { return (u32)__cvta_generic_to_shared(at); }
__device__ inline void team_sync(int team) { asm volatile("bar.sync %0, %1;" ::"r"(1 + team), "n"(TEAM) : "memory"); }
// Tensor cores read shared memory by another path than ordinary stores write it.
__device__ inline void written_for_tensor_cores() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
// The second team begins a convolution after the first one has issued LAG stages of it.
__device__ inline void stay_apart(int team, int stage) {
  if (TEAMS == 2) {
    if (team == 0 && stage == LAG) asm volatile("bar.arrive 3, %0;" ::"n"(WORKERS) : "memory");
    if (team == 1 && stage == 0) asm volatile("bar.sync 3, %0;" ::"n"(WORKERS) : "memory");
  }
}

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

// Fetches weights, each stage as soon as all warps have done with what it held before.
struct Fetching {
  Stages& stages;
  Place place;
  __device__ void stage(const bf16*& from, int numbers) {
    const int bytes = numbers * sizeof(bf16);
    const u32 barrier = address(&stages.full[place.stage]);
    await_barrier(&stages.empty[place.stage], place.phase ^ 1);  // a new barrier has passed the phase before
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
        address(stages.of[place.stage])), "l"(from), "r"(bytes), "r"(barrier) : "memory");
    from += numbers;
    place.advance();
  }
};

// The stages in turn. The products of a stage are waited for once those of the next one are under way.
struct Weights {
  Stages& stages;
  Place place;
  int before = -1;
  __device__ Weights(Stages& all, const bf16*) : stages(all) {}
  __device__ const bf16* await() {
    await_barrier(&stages.full[place.stage], place.phase);
    return stages.of[place.stage];
  }
  __device__ void issued(int) {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
    if (before >= 0 && threadIdx.x % 32 == 0) arrive(&stages.empty[before]);
    before = place.stage;
    place.advance();
  }
  __device__ void finished() {
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    if (threadIdx.x % 32 == 0) arrive(&stages.empty[before]);
    before = -1;
  }
  // A stage that was read by ordinary instructions.
  __device__ void released(int) {
    __syncwarp();
    if (threadIdx.x % 32 == 0) arrive(&stages.empty[place.stage]);
    place.advance();
  }
  __device__ void again() {}
};

__device__ inline void begin_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }

// Where a matrix is: units of eight rows of 16 bytes after each other, `step` rows from one to the next, and `next` rows from
// eight of the 16 inputs to the other eight.
__device__ inline unsigned long long matrix(const bf16* at, int next, int step) {
  return (unsigned long long)(address(at) >> 4) | (unsigned long long)next << 16 | (unsigned long long)step << 32;
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
  const unsigned long long left = matrix(a, ROWS, STEP), right = matrix(b, CHANNELS, 8);
#if CHANNELS == 96
  asm volatile(PRODUCT("96", N48, "%48", "%49", "%50") : F32, F16(32) : "l"(left), "l"(right), "r"(keep));
#elif CHANNELS == 128
  asm volatile(PRODUCT("128", N64, "%64", "%65", "%66") : F32, F16(32), F16(48) : "l"(left), "l"(right), "r"(keep));
#endif
}

// Matrices of 8 x 8 numbers: a thread has two numbers of each, and a lane says where one row of 16 bytes is.
template <int COUNT> __device__ inline void put_matrices(bf16* at, const u32 (&values)[4]) {
  if (COUNT == 4)
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address(at)), "r"(values[0]),
                 "r"(values[1]), "r"(values[2]), "r"(values[3]));
  else
    asm volatile("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1, %2};" ::"r"(address(at)), "r"(values[0]), "r"(values[1]));
}
__device__ inline void get_matrices(const bf16* at, u32 (&values)[4]) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(values[0]), "=r"(values[1]), "=r"(values[2]), "=r"(values[3]) : "r"(address(at)));
}
#endif

// Where row `row` of a tile is.
struct Row {
  int row;    // of ROWS
  int board;  // of the block
  int point;  // of the board; -1: an empty row
};

__device__ inline Row row_of(int tile, int row) {
  if (LINES) return {HALO + tile * PITCH + row / 8 * STRIDE + row % 8, tile, row};
  constexpr int IN = ALL_ROWS / 64 / GROUPS;  // tiles of a group
  const int place = tile % IN * 64 + row, within = place % PITCH, board = min(place / PITCH, IN_GROUP - 1);
  const bool on = place / PITCH < IN_GROUP && within / STRIDE < HEIGHT && within % STRIDE < WIDTH;
  return {HALO + tile / IN * (GROUP_ROWS + HALO) + place, tile / IN * IN_GROUP + board,
          on ? within / STRIDE * WIDTH + within % STRIDE : -1};
}
__device__ inline int row_of_point(int board, int point) {
  return HALO + board / IN_GROUP * (GROUP_ROWS + HALO) + board % IN_GROUP * PITCH + point / WIDTH * STRIDE + point % WIDTH;
}

// A convolution of ALL slices of inputs, with TAPS places.
template <int ALL, int TAPS>
__device__ inline void convolve(float (&sums)[TILES][SUMS], const bf16* (&begin)[TILES], Weights& pipeline, int team, int keep) {
  constexpr int STAGE = stage_of(ALL);
#pragma unroll 1
  for (int tap = 0; tap < TAPS; tap++) {
    const int shift = TAPS == 1 ? 0 : (tap / 3 - 1) * STRIDE + tap % 3 - 1;
#pragma unroll 1
    for (int from = 0; from < ALL; from += STAGE) {
      if (TAPS > 1) stay_apart(team, tap * (ALL / STAGE) + from / STAGE);
      const bf16* stage = pipeline.await();
      begin_products();
#pragma unroll
      for (int slice = 0; slice < STAGE; slice++) {
#pragma unroll
        for (int tile = 0; tile < TILES; tile++)
          multiply(sums[tile], begin[tile] + ((from + slice) * 2 * ROWS + shift) * 8, stage + slice * SLICE, keep);
        keep = 1;
      }
      pipeline.issued(STAGE);
    }
  }
  pipeline.finished();
}

// Runs `work` with the threads that multiply, and `fetch_stages` with the one that fetches weights. All rows are empty before.
template <class Work, class Fetch>
__device__ inline void run(Stages& stages, bf16 (&rows)[CHANNELS / 8][ROWS][8], const Work& work, const Fetch& fetch_stages) {
  for (int k = threadIdx.x; k < CHANNELS / 8 * ROWS; k += THREADS) ((uint4*)rows)[k] = {0, 0, 0, 0};
#ifdef EMULATED
  __syncthreads();
  if (threadIdx.x < WORKERS) work();
#else
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < DEPTH; stage++) {
      begin_barrier(&stages.full[stage], 1);
      begin_barrier(&stages.empty[stage], WORKERS / 32);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  written_for_tensor_cores();
  __syncthreads();
  if (threadIdx.x < WORKERS) {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(TEAMS == 2 ? 240 : 160));
    work();
  } else {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
    if (threadIdx.x == WORKERS) fetch_stages();
  }
#endif
}
