// One 3x3 convolution of a tower in training, with everything between it and its neighbours, as one program for Hopper GPUs. The
// rows, tiles and stages are those of nets/hopper.cuh; see convs.py for the arguments. With z = x * scale + shift:
//
//   forward:   a = activate(z)         y = convolution of a, + added            sums of y and of y * y
//   BACKWARD:  g = dy + s + t * y      d = (convolution of g) * slope(z)        sums of d and of d * x
//                                      dx = d * scale, + added
//
// Scale and shift come from the sums that the program before this one has left, a part for each of its blocks of threads. So do s and t,
// which are the gradient that the statistics of y pass on.
//
// Two warpgroups multiply, each the rows of one team (half of the boards). All others but one warp are helpers: they prepare the
// rows of one team (x to a, or dy to g) and finish its results while the other team's rows are multiplied. The last warp
// fetches weights. For each team:
//
//   helpers:      prepare, then FULL        wait for DONE, finish, prepare the next boards, then FULL ...
//   multipliers:  wait for FULL, multiply, put the results where the rows were, then DONE ...
//
// A helper always has the same eight channels, of every LANES-th point: 16 bytes, read and written at once. What it finishes and prepares
// is one stream of items, and it loads AHEAD of them before it needs them, across teams and sets of boards.
//
// Defined by the caller besides: BACKWARD, ADDED (whether there is something to add), FOLLOWED (whether s and t come from another
// program's sums, else they are given), GIVEN (parts of the sums that are given), BATCH, PARTS (of the sums that it leaves, at least one
// for each block of threads), AHEAD and SHARED (bytes of shared memory).

constexpr int EIGHTS = CHANNELS / 8, HELPERS = 256 - 32, ALL_THREADS = WORKERS + HELPERS + 32;
constexpr int LANES = HELPERS / EIGHTS;
constexpr int EACH = (IN_TEAM * POINTS + LANES - 1) / LANES;         // points of a helper
constexpr int ITEMS = (2 * EACH + AHEAD - 1) / AHEAD * AHEAD;  // to finish and to prepare, for each team
constexpr int STAGE = stage_of(ALL_SLICES);
constexpr int GATHERERS = ALL_THREADS / (CHANNELS / 2);  // threads that sum the parts of four numbers
constexpr int PER_BOARD = POINTS * EIGHTS;  // units of 16 bytes
constexpr int SETS = (BATCH + BOARDS - 1) / BOARDS;  // of boards, that blocks of threads take in turn
constexpr float EPSILON = 1e-4f, NEW_SHARE = 0.01f, COUNT = (float)(BATCH * (long long)POINTS);  // as nets/norms.py
// The registers of a thread, of 65,536 for all; the multipliers' sums need TILES * CHANNELS / 2 of them.
constexpr int MULTIPLIER_REGISTERS = TILES * SUMS + 32, HELPER_REGISTERS = 256 - MULTIPLIER_REGISTERS;
static_assert(TEAMS == 2 && LAG == 0, "helpers keep the teams apart");
static_assert((BATCH + 2ll * BOARDS * 256) * PER_BOARD < 1ll << 31, "units are counted with 32 bits");
static_assert(2 * EACH >= AHEAD, "what is loaded ahead belongs to this team or the next");

struct Shared {
  Stages stages;
  alignas(128) bf16 rows[EIGHTS][ROWS][8];
  alignas(16) float numbers[4 * CHANNELS];  // scale, shift, s, t
  u16 places[IN_TEAM * POINTS];             // rows of the first team's points; those of the other are TEAM_ROWS further
};
static_assert(sizeof(Shared) <= SHARED, "as convs.py counts it");
static_assert(sizeof(float) * LANES * 2 * CHANNELS <= sizeof(Shared::rows), "all sums fit into the rows");
static_assert(sizeof(float) * GATHERERS * 2 * CHANNELS <= sizeof(Shared::rows), "all sums fit into the rows");

struct Arrays {  // of units of 16 bytes, [boards, points, EIGHTS]
  const uint4 *x, *y, *dy, *added;
  const bf16* weights;
  uint4 *between, *out;  // what is convolved, and the result
  float* sums;           // [PARTS, 2, CHANNELS]
};

struct Eight {
  float of[8];
  __device__ Eight() {}
  __device__ Eight(const uint4& unit) : of{low(unit.x), high(unit.x), low(unit.y), high(unit.y), low(unit.z), high(unit.z), low(unit.w), high(unit.w)} {}
  __device__ Eight(const float* at) {
    const float4 a = ((const float4*)at)[0], b = ((const float4*)at)[1];
    of[0] = a.x, of[1] = a.y, of[2] = a.z, of[3] = a.w, of[4] = b.x, of[5] = b.y, of[6] = b.z, of[7] = b.w;
  }
  __device__ uint4 rounded() const { return {two(of[0], of[1]), two(of[2], of[3]), two(of[4], of[5]), two(of[6], of[7])}; }
};

__device__ inline float slope(float z) {
  if (ACTIVATION == 0) return z > 0.0f ? 1.0f : 0.0f;
  if (ACTIVATION == 2) {
    const float s = 1.0f / (1.0f + expf(-z));
    return s * fmaf(z, 1.0f - s, 1.0f);
  }
  if (z > 20.0f) return 1.0f;
  // mish: t + z (1 - t t) sigmoid(z), with t = n / (n + 2) = tanh(log(1 + e))
  const float e = expf(z), n = e * (e + 2.0f), t = n / (n + 2.0f);
  return fmaf(z * (1.0f - t * t), e / (1.0f + e), t);
}

// Barriers of a part of the threads; 1 to 3 are those of hopper.cuh, which are not used here.
enum Barrier { FULL = 4, DONE = 6, MULTIPLIERS = 8, ALL_HELPERS = 10 };  // the first three for each team
#ifdef EMULATED
inline void meet(int barrier, int threads) { emulator::meet(barrier, threads); }
inline void announce(int barrier, int threads) { emulator::announce(barrier, threads); }
inline void expect(const uint4*, int) {}
inline uint4 read(const uint4* at) { return *at; }
#else
// What a thread has written before it announces or meets is there for those that meet.
__device__ inline void meet(int barrier, int threads) { asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory"); }
__device__ inline void announce(int barrier, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}
// Brings units nearer, which will be needed soon.
__device__ inline void expect(const uint4* from, int units) {
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(from), "r"((u32)(units * sizeof(uint4))) : "memory");
}
// Where it is written: the compiler would read too far ahead for its registers, or not far enough.
__device__ inline uint4 read(const uint4* at) {
  uint4 unit;
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(unit.x), "=r"(unit.y), "=r"(unit.z), "=r"(unit.w) : "l"(at));
  return unit;
}
#endif

struct Boards {  // of a team
  int first;   // unit
  int points;  // of all of them
};
__device__ inline Boards boards_at(int set, int team) {
  const int first = set * BOARDS + team * IN_TEAM, left = BATCH - first;
  return {first * PER_BOARD, set < 0 || left <= 0 ? 0 : (left < IN_TEAM ? left : IN_TEAM) * POINTS};
}
__device__ inline void expect(const uint4* array, const Boards& at) {
  if (at.points) expect(array + at.first, at.points * EIGHTS);
}
__device__ inline void expect_before(const Arrays& arrays, const Boards& at) {
  expect(BACKWARD ? arrays.y : arrays.x, at);
  if (BACKWARD) expect(arrays.dy, at);
}

// Fetches the weights once for each set of boards, and has what the helpers need next brought nearer: a team's part in each half.
__device__ inline void fetch_all(Stages& stages, const Arrays& arrays) {
  constexpr int HALF = 9 * ALL_SLICES / STAGE / 2 * STAGE;
  Fetching fetching{stages};
  for (int set = blockIdx.x; set < SETS; set += gridDim.x) {
    const bf16* from = arrays.weights;
    for (int slice = 0; slice < 9 * ALL_SLICES; slice += STAGE) {
      fetching.stage(from, STAGE * SLICE);
      if (slice == 0 || slice == HALF) {
        const int team = slice != 0;
        if (BACKWARD) expect(arrays.x, boards_at(set, team));
        if (ADDED) expect(arrays.added, boards_at(set, team));
        expect_before(arrays, boards_at(set + gridDim.x, team));
      }
    }
  }
}

// Multiplies the rows of a team.
__device__ inline void multiply_all(Shared& shared, const Arrays& arrays, int team) {
  const int lane = threadIdx.x % 32, warp_row = threadIdx.x % 128 / 32 * 16;
  // The rows of a team's tiles follow each other, which saves registers. A lane puts matrices into one row of each tile.
  constexpr int TILE = (LINES ? PITCH : 64) * 8;  // numbers from one to the next
  const bf16* begin[TILES];
  const int lane_at = (lane / 16 * ROWS + row_of(team * TILES, warp_row + lane % 16).row) * 8;
  const int trash_at = (lane / 16 * ROWS + TRASH) * 8;
  int empty = 0;  // bits: whether there is no point in that row of a tile
#pragma unroll
  for (int k = 0; k < TILES; k++) {
    begin[k] = shared.rows[0][row_of(team * TILES, 0).row] + k * TILE;
    empty |= (row_of(team * TILES + k, warp_row + lane % 16).point < 0) << k;
  }
  Weights pipeline(shared.stages, arrays.weights);
  for (int set = blockIdx.x; set < SETS; set += gridDim.x) {
    // Every helper has made its rows visible to the tensor cores before it announced them (`written_for_tensor_cores`).
    meet(FULL + team, WORKERS / 2 + HELPERS);
    pipeline.again();
    float sums[TILES][SUMS] = {};  // not left as they were: they would need their registers all the time
    convolve<ALL_SLICES, 9>(sums, begin, pipeline, team, 1);
    // Each warp has waited for its own products only, and they read the rows of other warps.
    meet(MULTIPLIERS + team, WORKERS / 2);
#pragma unroll
    for (int group = 0; group < EIGHTS; group += 2)
#pragma unroll
      for (int tile = 0; tile < TILES; tile++) {
        const float* sum = sums[tile] + group * 4;
        const u32 values[4] = {two(sum[0], sum[1]), two(sum[2], sum[3]), two(sum[4], sum[5]), two(sum[6], sum[7])};
        const int at = empty >> tile & 1 ? trash_at : lane_at + tile * TILE;
        put_matrices<4>(shared.rows[0][0] + at + group * ROWS * 8, values);
      }
    // Helpers read them by ordinary instructions. They announce FULL only after that, so nobody announces twice in a round.
    announce(DONE + team, WORKERS / 2 + HELPERS);
  }
}

// What a helper does with the rows of a team, one item after the other: finishes EACH units of these boards, prepares EACH of the next.
struct Turn { Boards now, next; };
struct Item { uint4 first, second; };

__device__ inline void help(Shared& shared, const Arrays& arrays) {
  constexpr int TEAM_ROWS = LINES ? IN_TEAM * PITCH : GROUP_ROWS + HALO;
  const int helper = threadIdx.x - WORKERS, eight = helper % EIGHTS, start = helper / EIGHTS;
  const float* const numbers = shared.numbers + eight * 8;
  float total[2][8] = {};

  const auto points_of = [&](const Boards& at) { return start < LANES ? at.points - start : 0; };  // this one and those after it
  const auto unit_at = [&](const Boards& at, int number) { return at.first + start * EIGHTS + eight + number * LANES * EIGHTS; };
  const auto load = [&](const Turn& turn, int item) {
    const bool finishing = item < EACH;
    const int number = finishing ? item : item - EACH;
    const Boards& at = finishing ? turn.now : turn.next;
    const uint4* const one = finishing ? (BACKWARD ? arrays.x : arrays.added) : (BACKWARD ? arrays.y : arrays.x);
    const uint4* const other = finishing ? arrays.added : arrays.dy;
    const bool there = item < 2 * EACH && number * LANES < points_of(at);
    // Those that are not there are set, too: registers that are left as they were are never free.
    Item found{{0, 0, 0, 0}, {0, 0, 0, 0}};
    if (there && (BACKWARD || ADDED || !finishing)) found.first = read(one + unit_at(at, number));
    if (there && BACKWARD && (ADDED || !finishing)) found.second = read(other + unit_at(at, number));
    return found;
  };
  Item ahead[AHEAD];
  for (int k = 0; k < AHEAD; k++) ahead[k] = {{0, 0, 0, 0}, {0, 0, 0, 0}};  // of the first turn, which finishes nothing

  for (int set = (int)blockIdx.x - (int)gridDim.x; set < SETS; set += gridDim.x)
#pragma unroll 1
    for (int team = 0; team < 2; team++) {
      const Turn turn{boards_at(set, team), boards_at(set + gridDim.x, team)};
      const int set_after = team ? set + gridDim.x : set;
      const Turn after{boards_at(set_after, !team), boards_at(set_after + gridDim.x, !team)};
      uint4* const rows = (uint4*)shared.rows[eight][team * TEAM_ROWS];
      const u16* const places = shared.places + start;
      const auto load_ahead = [&](int item) {
        ahead[item % AHEAD] = item + AHEAD < ITEMS ? load(turn, item + AHEAD) : load(after, item + AHEAD - ITEMS);
      };

      // The results are there. A thread writes the next boards where it alone has read these, so nothing else is waited for.
      if (set >= 0) meet(DONE + team, WORKERS / 2 + HELPERS);
      {
        const Eight scale(numbers), shift(numbers + CHANNELS);
        const auto finish = [&](int number, const Item& item) {
          Eight value(rows[places[number * LANES]]);
          if (BACKWARD) {
            const Eight x(item.first), more(item.second);
#pragma unroll
            for (int k = 0; k < 8; k++) {
              const float z = fmaf(x.of[k], scale.of[k], shift.of[k]);
              const float d = ACTIVATION == 0 ? (z > 0.0f ? value.of[k] : 0.0f) : value.of[k] * slope(z);
              total[0][k] += d;
              total[1][k] = fmaf(d, x.of[k], total[1][k]);
              value.of[k] = ADDED ? fmaf(d, scale.of[k], more.of[k]) : d * scale.of[k];
            }
          } else if (ADDED) {
            const Eight more(item.first);
#pragma unroll
            for (int k = 0; k < 8; k++) value.of[k] += more.of[k];
          }
          const uint4 packed = value.rounded();
          arrays.out[unit_at(turn.now, number)] = packed;
          if (!BACKWARD) {
            const Eight y(packed);
#pragma unroll
            for (int k = 0; k < 8; k++) {
              total[0][k] += y.of[k];
              total[1][k] = fmaf(y.of[k], y.of[k], total[1][k]);
            }
          }
        };
#pragma unroll
        for (int number = 0; number < EACH; number++) {
          if (number * LANES < points_of(turn.now)) finish(number, ahead[number % AHEAD]);
          load_ahead(number);
        }
      }
      {
        const Eight factor(numbers + (BACKWARD ? 3 * CHANNELS : 0)), addend(numbers + (BACKWARD ? 2 * CHANNELS : CHANNELS));
        const auto prepare = [&](int number, const Item& item) {
          Eight value(item.first);
          const Eight more(item.second);
#pragma unroll
          for (int k = 0; k < 8; k++) value.of[k] = fmaf(value.of[k], factor.of[k], BACKWARD ? more.of[k] + addend.of[k] : addend.of[k]);
          const float* v = value.of;
          const uint4 packed = BACKWARD ? value.rounded()
              : uint4{activated(v[0], v[1]), activated(v[2], v[3]), activated(v[4], v[5]), activated(v[6], v[7])};
          rows[places[number * LANES]] = packed;
          arrays.between[unit_at(turn.next, number)] = packed;
        };
#pragma unroll
        for (int number = 0; number < ITEMS - EACH; number++) {
          if (number < EACH && number * LANES < points_of(turn.next)) prepare(number, ahead[(EACH + number) % AHEAD]);
          load_ahead(EACH + number);
        }
      }
      if (set + (int)gridDim.x < SETS) {
        written_for_tensor_cores();
        announce(FULL + team, WORKERS / 2 + HELPERS);
      }
    }

  // The multipliers have done with all rows: the last DONE of both teams has been met.
  meet(ALL_HELPERS, HELPERS);
  auto& parts = *(float(*)[LANES][2 * CHANNELS])shared.rows;
  if (start < LANES)
#pragma unroll
    for (int k = 0; k < 16; k++) parts[start][k / 8 * CHANNELS + eight * 8 + k % 8] = total[k / 8][k % 8];
  meet(ALL_HELPERS, HELPERS);
  for (int k = helper; k < 2 * CHANNELS; k += HELPERS) {
    float sum = 0.0f;
    for (int part = 0; part < LANES; part++) sum += parts[part][k];
    for (int part = blockIdx.x; part < PARTS; part += gridDim.x)
      arrays.sums[part * 2 * CHANNELS + k] = part == blockIdx.x ? sum : 0.0f;
  }
}

// Calls `of` with a channel and with the sums [GIVEN, 2, CHANNELS] of it; all threads of the block take part.
template <class Of> __device__ inline void gather(Shared& shared, const float* given, const Of& of) {
  auto& gathered = *(float(*)[GATHERERS][2 * CHANNELS])shared.rows;
  const int column = threadIdx.x % (CHANNELS / 2), gatherer = threadIdx.x / (CHANNELS / 2);
  if (gatherer < GATHERERS) {
    float4 sum = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll 16
    for (int part = gatherer; part < GIVEN; part += GATHERERS) {
      const float4 more = ((const float4*)given)[part * (CHANNELS / 2) + column];
      sum = {sum.x + more.x, sum.y + more.y, sum.z + more.z, sum.w + more.w};
    }
    ((float4*)gathered[gatherer])[column] = sum;
  }
  __syncthreads();
  if (threadIdx.x < CHANNELS) {
    float first = 0.0f, second = 0.0f;
    for (int k = 0; k < GATHERERS; k++) {
      first += gathered[k][threadIdx.x];
      second += gathered[k][CHANNELS + threadIdx.x];
    }
    of(threadIdx.x, first, second);
  }
  __syncthreads();
}

// `of` gets a channel and its sums, and sets the four numbers of it.
template <class Of> __device__ inline void run_all(const Arrays& given, const int* which, const float* sums, const Of& of) {
  SHARED_MEMORY
  Arrays arrays = given;
  arrays.weights += *which * (9ll * CHANNELS * CHANNELS);
  const int warpgroup = __shfl_sync(~0u, threadIdx.x / 128, 0);
#ifndef EMULATED
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < DEPTH; stage++) {
      begin_barrier(&shared.stages.full[stage], 1);
      begin_barrier(&shared.stages.empty[stage], WORKERS / 32);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    for (int team = 0; team < 2; team++) expect_before(arrays, boards_at(blockIdx.x, team));
  }
#endif
  gather(shared, sums, [&](int channel, float first, float second) { of(shared.numbers, channel, first, second); });
  for (int k = threadIdx.x; k < EIGHTS * ROWS; k += ALL_THREADS) ((uint4*)shared.rows)[k] = {0, 0, 0, 0};
  for (int k = threadIdx.x; k < IN_TEAM * POINTS; k += ALL_THREADS) shared.places[k] = row_of_point(k / POINTS, k % POINTS);
  // The tensor cores also read the empty rows, which nobody writes again.
  written_for_tensor_cores();
  __syncthreads();
  if (warpgroup < 2) {
#ifndef EMULATED
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(MULTIPLIER_REGISTERS));
#endif
    multiply_all(shared, arrays, warpgroup);
  } else {
#ifndef EMULATED
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(HELPER_REGISTERS));
#endif
    if (threadIdx.x < WORKERS + HELPERS)
      help(shared, arrays);
#ifndef EMULATED
    else if (threadIdx.x == WORKERS + HELPERS)
      fetch_all(shared.stages, arrays);
#endif
  }
}

#if !BACKWARD
extern "C" __global__ void __launch_bounds__(ALL_THREADS, 1) forward(
    const uint4* x, const uint4* added, const bf16* weights, const int* which, const float* given, const float* gamma,
    const float* beta, const float* old_mean, const float* old_variance, uint4* a, uint4* y, float* sums, float* numbers,
    float* new_mean, float* new_variance) {
  run_all({x, nullptr, nullptr, added, weights, a, y, sums}, which, given, [&](float* own, int k, float sum, float squares) {
    const float mean = sum / COUNT, variance = fmaxf(squares / COUNT - mean * mean, 0.0f);
    const float inverse = 1.0f / sqrtf(variance + EPSILON), scale = gamma[k] * inverse, shift = beta[k] - mean * scale;
    own[k] = scale;
    own[CHANNELS + k] = shift;
    if (blockIdx.x == 0) {
      numbers[k] = scale;
      numbers[CHANNELS + k] = shift;
      numbers[2 * CHANNELS + k] = mean;
      numbers[3 * CHANNELS + k] = inverse;
      new_mean[k] = old_mean[k] + NEW_SHARE * (mean - old_mean[k]);
      new_variance[k] = old_variance[k] + NEW_SHARE * (variance - old_variance[k]);
    }
  });
}
#else
// `numbers` are those of the norm before this convolution, `next` those of the norm after it, whose parameters' gradients it writes.
extern "C" __global__ void __launch_bounds__(ALL_THREADS, 1) backward(
    const uint4* x, const uint4* y, const uint4* dy, const uint4* added, const bf16* weights, const int* which,
    const float* given, const float* numbers, const float* next, uint4* g, uint4* dx, float* sums, float* of_gamma,
    float* of_beta) {
  run_all({x, y, dy, added, weights, g, dx, sums}, which, given, [&](float* own, int k, float first, float second) {
    own[k] = numbers[k];
    own[CHANNELS + k] = numbers[CHANNELS + k];
    float gamma = 0.0f, s = first, t = 2.0f * second;  // as they are given: the gradients of the sums of y and of y * y
    if (FOLLOWED) {  // sums of d and of d * y: the gradients of the shift, and of the scale without what it does to the shift
      const float scale = next[k], mean = next[2 * CHANNELS + k], inverse = next[3 * CHANNELS + k];
      gamma = (second - mean * first) * inverse;
      t = -gamma * scale * inverse / COUNT;
      s = -scale * first / COUNT - mean * t;
    }
    own[2 * CHANNELS + k] = s;
    own[3 * CHANNELS + k] = t;
    if (blockIdx.x == 0) {
      of_gamma[k] = gamma;
      of_beta[k] = FOLLOWED ? first : 0.0f;
    }
  });
}
#endif
