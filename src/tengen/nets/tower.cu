// A whole residual tower, from the input planes to the neck, as one program for Hopper GPUs: the activations of a few
// boards stay in shared memory, weights pass by, and tensor cores (wgmma) multiply. See nets/tower.py for the arguments.
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
// Defined by the caller: HEIGHT and WIDTH of the board, INPUTS and CHANNELS, POOLED channels (0: none), OUTPUTS of the neck,
// ACTIVATION (0 relu, 1 mish, 2 silu), SIDE of the board as a pool is scaled, LAYERS and KINDS (of each layer, as below), BATCH,
// LINES (1: a tile is a board of 8 x 8), GROUPS of boards (1 or 2) that share the rows, TEAMS (1 or 2), TILES of a warpgroup,
// STREAM_ROWS of the residual stream in shared memory (0: it is in registers), DEPTH (stages), SLICES (of 16 inputs in a stage,
// at most) and SHARED (bytes of shared memory).

enum Kind { STEM, FIRST, SECOND, POOLING, SECOND_POOLED, NECK };

constexpr int WARPGROUPS = TEAMS == 2 ? 2 : 3, ALL_ROWS = WARPGROUPS * TILES * 64;
constexpr int WORKERS = WARPGROUPS * 128, TEAM = WORKERS / TEAMS, THREADS = WORKERS + 128;
constexpr int STRIDE = WIDTH + 1, HALO = STRIDE + 1, PITCH = (HEIGHT + 1) * STRIDE, POINTS = HEIGHT * WIDTH;
// Tensor cores read units of eight rows. If these are the lines of a board, nothing empty is multiplied.
constexpr int STEP = LINES ? STRIDE : 8;  // rows from one unit to the next
constexpr int GROUP_ROWS = LINES ? ALL_ROWS / 64 * PITCH : ALL_ROWS / GROUPS;
constexpr int LENGTH = (HEIGHT - 1) * STRIDE + WIDTH;  // rows from the first point of a board to its last
constexpr int IN_GROUP = (GROUP_ROWS - LENGTH) / PITCH + 1;  // the last board of a group needs no empty line
constexpr int BOARDS = GROUPS * IN_GROUP, IN_TEAM = BOARDS / TEAMS;
constexpr int TRASH = HALO + GROUPS * (GROUP_ROWS + HALO), ROWS = TRASH + 1;  // the last row takes what empty ones would get
constexpr int SLICE = 16 * CHANNELS;  // numbers
constexpr int REGULAR = CHANNELS - POOLED, SUMS = CHANNELS / 2;
constexpr int LAG = DEPTH / 2;  // stages between the teams
static_assert(LENGTH <= GROUP_ROWS, "a board fits");
static_assert(OUTPUTS <= CHANNELS && INPUTS <= CHANNELS, "nothing is wider than the tower");
static_assert(!LINES || HEIGHT == 8 && WIDTH == 8, "a tile is a board");
static_assert(STREAM_ROWS == 0 || STREAM_ROWS == BOARDS * POINTS + 1, "its last row takes what empty ones would get");
static_assert(DEPTH < 9, "the first team cannot be a whole convolution ahead");
#if POOLED
constexpr int PAIRS = IN_TEAM * POOLED / 2;  // of pooled channels of all boards of a team
constexpr int PARTS = TEAM / PAIRS < 12 ? TEAM / PAIRS : 12;  // of the points, each of which a thread pools
static_assert(PARTS > 0, "a thread for each pair");
#endif

// In shared memory. Eight channels of a row are 16 bytes, the unit of the tensor cores.
struct Shared {
  alignas(128) bf16 stages[DEPTH][SLICES * SLICE];
  alignas(128) bf16 rows[CHANNELS / 8][ROWS][8];
#if STREAM_ROWS
  bf16 stream[CHANNELS / 8][STREAM_ROWS][8];
#endif
  struct Own {  // of a team
#if POOLED
    union {
      struct { float2 sum[PAIRS * PARTS], largest[PAIRS * PARTS]; } part;
      float bias[IN_TEAM * REGULAR];
    };
    float pool[IN_TEAM][3 * POOLED];
#endif
    alignas(8) float numbers[2 * CHANNELS];  // of the layer: scale and offset, or the bias
  } teams[TEAMS];
  alignas(8) unsigned long long full[DEPTH], empty[DEPTH];
};

static_assert(sizeof(Shared) <= SHARED, "as nets/tower.py counts it");

__constant__ u8 kinds[LAYERS] = KINDS;
constexpr int ALL_SLICES = CHANNELS / 16, STEM_SLICES = INPUTS / 16, REGULAR_SLICES = (REGULAR + 31) / 32 * 2;
// Slices in each stage of a layer that has `all`. They are equally many, because the products of a stage are one group for
// the tensor cores only if there is no branch between them.
__device__ constexpr int stage_of(int all) {
  int slices = all < SLICES ? all : SLICES;
  while (all % slices) slices--;
  return slices;
}
// How many inputs of the dense layer of a pool are in a stage.
constexpr int POOL_STAGE = SLICES * SLICE / REGULAR;

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
static Shared shared;
#define SHARED_MEMORY
inline void team_sync(int) { __syncthreads(); }
inline void written_for_tensor_cores() {}
inline void stay_apart(int, int) {}

// Weights are read where they are: there is no pipeline to emulate.
struct Weights {
  const bf16 *at, *begin;
  Weights(Shared&, const bf16* weights) : at(weights), begin(weights) {}
  const bf16* await() { return at; }
  void issued(int slices) { at += slices * SLICE; }
  void finished() {}
  void released(int numbers) { at += numbers; }
  void again() { at = begin; }
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
  Shared& shared;
  Place place;
  __device__ void stage(const bf16*& from, int numbers) {
    const int bytes = numbers * sizeof(bf16);
    const u32 barrier = address(&shared.full[place.stage]);
    await_barrier(&shared.empty[place.stage], place.phase ^ 1);  // a new barrier has passed the phase before
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
        address(shared.stages[place.stage])), "l"(from), "r"(bytes), "r"(barrier) : "memory");
    from += numbers;
    place.advance();
  }
};

__device__ inline void fetch_weights(Shared& shared, const bf16* weights) {
  Fetching fetching{shared};
  for (long long set = blockIdx.x; set * BOARDS < BATCH; set += gridDim.x) {
    const bf16* from = weights;
    for (int layer = 0; layer < LAYERS; layer++) {
      const int kind = kinds[layer];
      const int all = kind == STEM ? STEM_SLICES : kind == SECOND_POOLED ? REGULAR_SLICES : ALL_SLICES, stage = stage_of(all);
      for (int slice = 0, slices = (kind == NECK ? 1 : 9) * all; slice < slices; slice += stage)
        fetching.stage(from, stage * SLICE);
      if (kind == POOLING)
        for (int k = 0; k < 3 * POOLED; k += POOL_STAGE)
          fetching.stage(from, (3 * POOLED - k < POOL_STAGE ? 3 * POOLED - k : POOL_STAGE) * REGULAR);
    }
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
    asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
    if (before >= 0 && threadIdx.x % 32 == 0) arrive(&shared.empty[before]);
    before = place.stage;
    place.advance();
  }
  __device__ void finished() {
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    if (threadIdx.x % 32 == 0) arrive(&shared.empty[before]);
    before = -1;
  }
  // A stage that was read by ordinary instructions.
  __device__ void released(int) {
    __syncwarp();
    if (threadIdx.x % 32 == 0) arrive(&shared.empty[place.stage]);
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
  int row;    // in `Shared::rows`
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

#if POOLED
// The bias of the regular channels of each board: their own, and what the pool of the others gives. Those lie after the
// regular ones in `rows`.
__device__ inline void pool_bias(Shared& shared, Weights& pipeline, int team) {
  Shared::Own& own = shared.teams[team];
  const int thread = threadIdx.x % TEAM, pair = thread % PAIRS, board = pair / (POOLED / 2);
  const int pooled = pair % (POOLED / 2) * 2, channel = REGULAR + pooled;
  float2 sum = {0.0f, 0.0f}, largest = {-INFINITE, -INFINITE};
  if (thread < PAIRS * PARTS) {
#pragma unroll 8
    for (int point = thread / PAIRS; point < POINTS; point += PARTS) {
      const u32 both = *(const u32*)&shared.rows[channel / 8][row_of_point(team * IN_TEAM + board, point)][channel % 8];
      sum = {sum.x + low(both), sum.y + high(both)};
      largest = {fmaxf(largest.x, low(both)), fmaxf(largest.y, high(both))};
    }
    own.part.sum[thread] = sum;
    own.part.largest[thread] = largest;
  }
  team_sync(team);
  if (thread < PAIRS) {
    for (int part = 1; part < PARTS; part++) {
      const float2 other = own.part.sum[part * PAIRS + pair], high = own.part.largest[part * PAIRS + pair];
      sum = {sum.x + other.x, sum.y + other.y};
      largest = {fmaxf(largest.x, high.x), fmaxf(largest.y, high.y)};
    }
    float* pool = own.pool[board] + pooled;
    const float side = SIDE;
    *(float2*)pool = {sum.x / POINTS, sum.y / POINTS};
    *(float2*)(pool + POOLED) = {sum.x / POINTS * side, sum.y / POINTS * side};
    *(float2*)(pool + 2 * POOLED) = largest;
  }
  team_sync(team);
  constexpr int OUTPUTS_ALL = IN_TEAM * REGULAR, EACH = (OUTPUTS_ALL + TEAM - 1) / TEAM;
  float bias[EACH];
#pragma unroll
  for (int k = 0; k < EACH; k++) bias[k] = own.numbers[(thread + k * TEAM) % REGULAR];
  for (int from = 0; from < 3 * POOLED; from += POOL_STAGE) {
    const bf16* kernel = pipeline.await();
    const int count = 3 * POOLED - from < POOL_STAGE ? 3 * POOLED - from : POOL_STAGE;
#pragma unroll
    for (int k = 0; k < EACH; k++)
      if (const int output = thread + k * TEAM; output < OUTPUTS_ALL) {
        const float* pool = own.pool[output / REGULAR] + from;
#pragma unroll 8
        for (int i = 0; i < count; i++) bias[k] = fmaf(pool[i], to_float(kernel[i * REGULAR + output % REGULAR]), bias[k]);
      }
    pipeline.released(count * REGULAR);
  }
#pragma unroll
  for (int k = 0; k < EACH; k++)
    if (thread + k * TEAM < OUTPUTS_ALL) own.bias[thread + k * TEAM] = bias[k];
  team_sync(team);
}
#endif

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

template <int FROM, int TO> struct Channels { static constexpr int from = FROM, to = TO; };

// Works on all layers of all boards of a team.
__device__ inline void work(Shared& shared, const bf16* x, const bf16* weights, const float* all_numbers, bf16* out) {
  const int warpgroup = __shfl_sync(~0u, threadIdx.x / 128, 0), team = TEAMS == 2 ? warpgroup : 0;
  const int thread = threadIdx.x % TEAM, lane = threadIdx.x % 32, warp_row = threadIdx.x % 128 / 32 * 16;
  Shared::Own& own = shared.teams[team];
  const bf16* begin[TILES];
  int row_at[TILES];  // where the lane puts matrices: numbers from the first of `rows`
#if STREAM_ROWS
  int stream_at[TILES];
#else
  u32 stream[TILES][SUMS / 2];
#endif
  const auto tile_of = [&](int k) { return TEAMS == 2 ? team * TILES + k : k * WARPGROUPS + warpgroup; };
#pragma unroll
  for (int k = 0; k < TILES; k++) {
    begin[k] = shared.rows[0][row_of(tile_of(k), 0).row];
    const Row row = row_of(tile_of(k), warp_row + lane % 16);
    row_at[k] = (lane / 16 * ROWS + (row.point < 0 ? TRASH : row.row)) * 8;
#if STREAM_ROWS
    stream_at[k] = (lane / 16 * STREAM_ROWS + (row.point < 0 ? BOARDS * POINTS : row.board * POINTS + row.point)) * 8;
#endif
  }
  Weights pipeline(shared, weights);
  float sums[TILES][SUMS];

  for (long long set = blockIdx.x; set * BOARDS < BATCH; set += gridDim.x) {
    const long long first = set * BOARDS + team * IN_TEAM;
    const int boards = BATCH - first < IN_TEAM ? (BATCH > first ? BATCH - first : 0) : IN_TEAM;
#pragma unroll 6
    for (int k = thread; k < boards * POINTS * (INPUTS / 8); k += TEAM) {
      const int group = k % (INPUTS / 8), point = k / (INPUTS / 8);
      *(uint4*)shared.rows[group][row_of_point(team * IN_TEAM + point / POINTS, point % POINTS)] =
          ((const uint4*)(x + (first * POINTS + point) * INPUTS))[group];
    }
    written_for_tensor_cores();
    team_sync(team);
    const float* numbers = all_numbers;
    pipeline.again();

    for (int layer = 0; layer < LAYERS; layer++) {
      const int kind = kinds[layer];
      const int needed = kind == NECK ? 0 : kind == FIRST || kind == POOLING ? CHANNELS : 2 * CHANNELS;
      for (int k = thread; k < needed; k += TEAM) fetch((const int*)numbers + k, (int*)own.numbers + k);
      numbers += needed;
      if (kind == STEM)
        convolve<STEM_SLICES, 9>(sums, begin, pipeline, team, 0);
      else if (kind == NECK)
        convolve<ALL_SLICES, 1>(sums, begin, pipeline, team, 0);
#if POOLED
      else if (kind == SECOND_POOLED)
        convolve<REGULAR_SLICES, 9>(sums, begin, pipeline, team, 1);
#endif
      else
        convolve<ALL_SLICES, 9>(sums, begin, pipeline, team, kind == SECOND);
      await_fetched();
      team_sync(team);  // nobody reads the rows any more

      // Puts pairs of neighbouring channels somewhere: what `of` makes of two sums and of what `given` has for their
      // channels. That is read before anything is written, or it would have to wait for that.
      const auto put = [&](
          auto channels, bf16* to, const int (&at)[TILES], int next, const auto& given, const auto& of) {
        constexpr int FROM = decltype(channels)::from, TO = decltype(channels)::to;
        const int channel = FROM + lane % 4 * 2;
        auto now = given(channel), after = given(channel + 8);
#pragma unroll
        for (int group = FROM / 8; group < TO / 8; group += 2) {
          u32 values[TILES][4];
#pragma unroll
          for (int tile = 0; tile < TILES; tile++)
#pragma unroll
            for (int k = 0; k < 4; k++)
              if (group + k / 2 < TO / 8) {
                const float* sum = sums[tile] + (group + k / 2) * 4 + k % 2 * 2;
                values[tile][k] = of(sum[0], sum[1], k < 2 ? now : after);
              }
          if (group + 2 < TO / 8) now = given(channel + (group + 2) * 8 - FROM);
          if (group + 3 < TO / 8) after = given(channel + (group + 3) * 8 - FROM);
#pragma unroll
          for (int tile = 0; tile < TILES; tile++)
            if (group + 1 < TO / 8)
              put_matrices<4>(to + at[tile] + group * next * 8, values[tile]);
            else
              put_matrices<2>(to + at[tile] + group * next * 8, values[tile]);
        }
      };
      const auto nothing = [](int) { return 0; };
      const auto bias = [&](int channel) { return *(const float2*)(own.numbers + channel); };
      const auto pack = [](float a, float b, int) { return two(a, b); };
      const auto activate_biased = [](float a, float b, float2 by) { return activated(a + by.x, b + by.y); };
      bf16* const rows = shared.rows[0][0];
      constexpr Channels<0, CHANNELS> ALL;
      if (kind == STEM || kind == SECOND || kind == SECOND_POOLED) {
#if STREAM_ROWS
        put(ALL, shared.stream[0][0], stream_at, STREAM_ROWS, nothing, pack);
#else
#pragma unroll
        for (int tile = 0; tile < TILES; tile++)
#pragma unroll
          for (int k = 0; k < SUMS / 2; k++) stream[tile][k] = two(sums[tile][k * 2], sums[tile][k * 2 + 1]);
#endif
        struct Affine { float2 scale, offset; };
        const auto affine = [&](int channel) { return Affine{bias(channel), bias(CHANNELS + channel)}; };
        put(ALL, rows, row_at, ROWS, affine, [](float a, float b, const Affine& by) {
          return activated(fmaf(a, by.scale.x, by.offset.x), fmaf(b, by.scale.y, by.offset.y));
        });
      } else if (kind == NECK) {
        put(ALL, rows, row_at, ROWS, nothing, pack);
      } else {
        if (kind == FIRST) {
          put(ALL, rows, row_at, ROWS, bias, activate_biased);
#if POOLED
        } else {
          put(Channels<REGULAR, CHANNELS>(), rows, row_at, ROWS, bias, activate_biased);
          team_sync(team);
          pool_bias(shared, pipeline, team);
#pragma unroll
          for (int tile = 0; tile < TILES; tile++)
#pragma unroll
            for (int half = 0; half < 2; half++) {
              const int board = row_of(tile_of(tile), warp_row + half * 8 + lane / 4).board - team * IN_TEAM;
#pragma unroll
              for (int group = 0; group < REGULAR / 8; group++) {
                const float2 by = *(const float2*)(own.bias + board * REGULAR + group * 8 + lane % 4 * 2);
                sums[tile][group * 4 + half * 2] += by.x;
                sums[tile][group * 4 + half * 2 + 1] += by.y;
              }
            }
          put(Channels<0, REGULAR>(), rows, row_at, ROWS, nothing, [](float a, float b, int) { return activated(a, b); });
#endif
        }
        // The sums of the second convolution begin as the residual stream.
#pragma unroll
        for (int tile = 0; tile < TILES; tile++)
#pragma unroll
          for (int group = 0; group < CHANNELS / 8; group += 2) {
#if STREAM_ROWS
            u32 four[4];
            get_matrices(shared.stream[0][0] + stream_at[tile] + group * STREAM_ROWS * 8, four);
#else
            const u32* four = stream[tile] + group * 2;
#endif
#pragma unroll
            for (int k = 0; k < 4; k++) {
              sums[tile][group * 4 + k * 2] = low(four[k]);
              sums[tile][group * 4 + k * 2 + 1] = high(four[k]);
            }
          }
      }
      written_for_tensor_cores();
      team_sync(team);
    }
#pragma unroll 4
    for (int k = thread; k < boards * POINTS * (OUTPUTS / 8); k += TEAM) {
      const int group = k % (OUTPUTS / 8), point = k / (OUTPUTS / 8);
      ((uint4*)(out + (first * POINTS + point) * OUTPUTS))[group] =
          *(const uint4*)shared.rows[group][row_of_point(team * IN_TEAM + point / POINTS, point % POINTS)];
    }
    team_sync(team);
  }
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) tower(
    const bf16* x, const bf16* weights, const float* numbers, bf16* out) {
  SHARED_MEMORY
  for (int k = threadIdx.x; k < CHANNELS / 8 * ROWS; k += THREADS) ((uint4*)shared.rows)[k] = {0, 0, 0, 0};
#ifdef EMULATED
  __syncthreads();
  if (threadIdx.x < WORKERS) work(shared, x, weights, numbers, out);
#else
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < DEPTH; stage++) {
      begin_barrier(&shared.full[stage], 1);
      begin_barrier(&shared.empty[stage], WORKERS / 32);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  written_for_tensor_cores();
  __syncthreads();
  if (threadIdx.x < WORKERS) {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(TEAMS == 2 ? 240 : 160));
    work(shared, x, weights, numbers, out);
  } else {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
    if (threadIdx.x == WORKERS) fetch_weights(shared, weights);
  }
#endif
}
