// One 3x3 convolution of a tower in training, with everything between it and its neighbours, as one program for Hopper GPUs. The
// rows, teams and stages are those of nets/hopper.cuh; see nets/convs.py for the arguments. With z = x * scale + shift:
//
//   forward:   a = activate(z)         y = convolution of a, + added            sums of y and of y * y
//   BACKWARD:  g = dy + s + t * y      d = (convolution of g) * slope(z)        sums of d and of d * x
//                                      dx = d * scale, + added
//
// A thread always has the same eight channels, of every LANES-th point: 16 bytes, read and written at once. Statistics are sums over
// the points of a block of threads, in `sums`.
//
// Defined by the caller besides: BACKWARD, ADDED (whether there is something to add), BATCH, PARTS (of `sums`, at least one for each
// block of threads), CHUNK (units that a thread loads at once), EAGER
// (whether it loads the first ones of the next boards before it has done with these) and SHARED (bytes of shared memory).

constexpr int EIGHTS = CHANNELS / 8, LANES = TEAM / EIGHTS;
constexpr int EACH = (IN_TEAM * POINTS + LANES - 1) / LANES;  // points of a thread
constexpr int STAGE = stage_of(ALL_SLICES);
constexpr long long PER_BOARD = POINTS * EIGHTS;  // units of 16 bytes
constexpr int NUMBERS = BACKWARD ? 4 : 2;         // for each channel: scale and shift, s and t

struct Shared {
  Stages stages;
  alignas(128) bf16 rows[EIGHTS][ROWS][8];
  alignas(16) float numbers[NUMBERS * CHANNELS];
};
static_assert(sizeof(Shared) <= SHARED, "as nets/plans.py counts it");
static_assert(sizeof(float) * WORKERS * 16 <= sizeof(Shared::rows), "all sums fit into the rows");

struct Arrays {  // of units of 16 bytes, [boards, points, EIGHTS]
  const uint4 *x, *y, *dy, *added;
  const bf16* weights;
  const float* numbers;
  uint4 *between, *out;  // what is convolved, and the result
  float* sums;           // [PARTS, 2, CHANNELS]
};

struct Eight {
  float of[8];
  __device__ Eight() {}
  __device__ Eight(const uint4& unit) : of{low(unit.x), high(unit.x), low(unit.y), high(unit.y), low(unit.z), high(unit.z), low(unit.w), high(unit.w)} {}
  __device__ Eight(const float* at) {
    for (int k = 0; k < 8; k++) of[k] = at[k];
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

#ifdef EMULATED
inline void all_sync() { __syncthreads(); }
inline void expect(const uint4*, long long) {}
inline void forget(int&) {}
inline uint4 read(const uint4* at) { return *at; }
#else
__device__ inline void all_sync() { asm volatile("bar.sync 4, %0;" ::"n"(WORKERS) : "memory"); }
// Brings units nearer, which will be needed soon.
__device__ inline void expect(const uint4* from, long long units) {
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(from), "r"((u32)(units * sizeof(uint4))) : "memory");
}
// Hides from the compiler that a number is what it was: it would keep everything computed from it in registers.
__device__ inline void forget(int& number) { asm volatile("" : "+r"(number)); }
// Where it is written: the compiler would read too far ahead for its registers.
__device__ inline uint4 read(const uint4* at) {
  uint4 unit;
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(unit.x), "=r"(unit.y), "=r"(unit.z), "=r"(unit.w) : "l"(at));
  return unit;
}
#endif

__device__ inline void fetch_all(Stages& stages, const Arrays& arrays) {
  Fetching fetching{stages};
  for (long long set = blockIdx.x; set * BOARDS < BATCH; set += gridDim.x) {
    const long long next = (set + gridDim.x) * BOARDS, boards = BATCH - next < BOARDS ? BATCH - next : BOARDS;
    const bf16* from = arrays.weights;
    for (int slice = 0; slice < 9 * ALL_SLICES; slice += STAGE) {
      fetching.stage(from, STAGE * SLICE);
      if (slice == 0 && boards > 0) {
        expect(arrays.x + next * PER_BOARD, boards * PER_BOARD);
        if (ADDED) expect(arrays.added + next * PER_BOARD, boards * PER_BOARD);
        if (BACKWARD) expect(arrays.y + next * PER_BOARD, boards * PER_BOARD);
        if (BACKWARD) expect(arrays.dy + next * PER_BOARD, boards * PER_BOARD);
      }
    }
  }
}

struct Boards {  // that a team has at once
  long long offset;  // of the thread's channels of the first point: units
  int points;        // of all of them; 0 for a thread that has no channels
};
template <int COUNT> struct Units { uint4 first[COUNT], second[COUNT]; };

__device__ inline void work(Shared& shared, const Arrays& arrays) {
  const int warpgroup = __shfl_sync(~0u, threadIdx.x / 128, 0), team = TEAMS == 2 ? warpgroup : 0;
  const int thread = threadIdx.x % TEAM, lane = threadIdx.x % 32, warp_row = threadIdx.x % 128 / 32 * 16;
  const int eight = thread % EIGHTS;
  int start = thread / EIGHTS;
  const bf16* begin[TILES];
  int row_at[TILES];  // where the lane puts matrices: numbers from the first of `rows`
#pragma unroll
  for (int k = 0; k < TILES; k++) {
    const int tile = TEAMS == 2 ? team * TILES + k : k * WARPGROUPS + warpgroup;
    begin[k] = shared.rows[0][row_of(tile, 0).row];
    const Row row = row_of(tile, warp_row + lane % 16);
    row_at[k] = (lane / 16 * ROWS + (row.point < 0 ? TRASH : row.row)) * 8;
  }
  for (int k = threadIdx.x; k < NUMBERS * CHANNELS; k += WORKERS) shared.numbers[k] = arrays.numbers[k];
  all_sync();
  const float* numbers = shared.numbers + eight * 8;
  Weights pipeline(shared.stages, arrays.weights);
  float total[2][8] = {};

  const auto boards_at = [&](long long set) {
    const long long first = set * BOARDS + team * IN_TEAM;
    const int boards = BATCH - first < IN_TEAM ? (BATCH > first ? BATCH - first : 0) : IN_TEAM;
    return Boards{first * PER_BOARD + eight, start < LANES ? boards * POINTS : 0};
  };
  const auto unit_at = [&](const Boards& at, int number) { return at.offset + (start + number * LANES) * EIGHTS; };
  const auto row_at_point = [&](int number) {
    const int point = start + number * LANES;
    return (uint4*)shared.rows[eight][row_of_point(team * IN_TEAM + point / POINTS, point % POINTS)];
  };
  // Loads a few units of two arrays. Those that are not there are set, too: registers that are left as they were are never free.
  const auto load = [&](const Boards& at, int from, Units<CHUNK>& units, const uint4* one, const uint4* other, bool both) {
#pragma unroll
    for (int k = 0; k < CHUNK; k++) {
      const bool there = from + k < EACH && start + (from + k) * LANES < at.points;
      units.first[k] = there ? read(one + unit_at(at, from + k)) : uint4{0, 0, 0, 0};
      units.second[k] = there && both ? read(other + unit_at(at, from + k)) : uint4{0, 0, 0, 0};
    }
  };
  const uint4* const before = BACKWARD ? arrays.y : arrays.x;  // what is read before the convolution, and after it
  const uint4* const after = BACKWARD ? arrays.x : arrays.added;
  Units<CHUNK> ahead;
  if (EAGER) load(boards_at(blockIdx.x), 0, ahead, before, arrays.dy, BACKWARD);

  for (long long set = blockIdx.x; set * BOARDS < BATCH; set += gridDim.x) {
    const Boards at = boards_at(set);
    // Calls `of` with every unit, and loads some of them ahead; the first ones are there.
    const auto each = [&](Units<CHUNK>& units, const uint4* one, const uint4* other, bool both, const auto& of) {
#pragma unroll
      for (int from = 0; from < EACH; from += CHUNK) {
        Units<CHUNK> now = units;
        load(at, from + CHUNK, units, one, other, both);
#pragma unroll
        for (int k = 0; k < CHUNK; k++)
          if (from + k < EACH && start + (from + k) * LANES < at.points) of(from + k, now.first[k], now.second[k]);
      }
    };

    forget(start);
    {
      const Eight scale(numbers + (BACKWARD ? 2 * CHANNELS : 0)), shift(numbers + (BACKWARD ? 3 * CHANNELS : CHANNELS));
      if (!EAGER) load(at, 0, ahead, before, arrays.dy, BACKWARD);
      each(ahead, before, arrays.dy, BACKWARD, [&](int number, const uint4& main, const uint4& change) {
        Eight value(main);
        const Eight more(change);
#pragma unroll
        for (int k = 0; k < 8; k++) value.of[k] = fmaf(value.of[k], scale.of[k], BACKWARD ? more.of[k] + shift.of[k] : shift.of[k]);
        const float* v = value.of;
        const uint4 packed = BACKWARD ? value.rounded()
            : uint4{activated(v[0], v[1]), activated(v[2], v[3]), activated(v[4], v[5]), activated(v[6], v[7])};
        *row_at_point(number) = packed;
        arrays.between[unit_at(at, number)] = packed;
      });
    }
    written_for_tensor_cores();
    team_sync(team);
    pipeline.again();
    float sums[TILES][SUMS] = {};  // not left as they were: they would need their registers all the time
    convolve<ALL_SLICES, 9>(sums, begin, pipeline, team, 1);

    forget(start);
    constexpr bool LOADS = BACKWARD || ADDED, EARLY = TEAMS == 2 && TILES * CHANNELS <= 288;  // registers for it
    Units<CHUNK> units;
    if (LOADS && EARLY) load(at, 0, units, after, arrays.added, BACKWARD && ADDED);
    team_sync(team);  // nobody reads the rows any more
#pragma unroll
    for (int group = 0; group < EIGHTS; group += 2)
#pragma unroll
      for (int tile = 0; tile < TILES; tile++) {
        const float* sum = sums[tile] + group * 4;
        const u32 values[4] = {two(sum[0], sum[1]), two(sum[2], sum[3]), two(sum[4], sum[5]), two(sum[6], sum[7])};
        put_matrices<4>(shared.rows[0][0] + row_at[tile] + group * ROWS * 8, values);
      }
    team_sync(team);
    if (LOADS && !EARLY) load(at, 0, units, after, arrays.added, BACKWARD && ADDED);
    if (EAGER) load(boards_at(set + gridDim.x), 0, ahead, before, arrays.dy, BACKWARD);
    const Eight scale(numbers), shift(numbers + CHANNELS);
    const auto finish = [&](int number, const uint4& main, const uint4& added) {
      Eight value(*row_at_point(number));
      if (BACKWARD) {
        const Eight x(main), more(added);
#pragma unroll
        for (int k = 0; k < 8; k++) {
          const float z = fmaf(x.of[k], scale.of[k], shift.of[k]);
          const float d = ACTIVATION == 0 ? (z > 0.0f ? value.of[k] : 0.0f) : value.of[k] * slope(z);
          total[0][k] += d;
          total[1][k] = fmaf(d, x.of[k], total[1][k]);
          value.of[k] = ADDED ? fmaf(d, scale.of[k], more.of[k]) : d * scale.of[k];
        }
      } else if (ADDED) {
        const Eight more(main);
#pragma unroll
        for (int k = 0; k < 8; k++) value.of[k] += more.of[k];
      }
      const uint4 packed = value.rounded();
      arrays.out[unit_at(at, number)] = packed;
      if (!BACKWARD) {
        const Eight y(packed);
#pragma unroll
        for (int k = 0; k < 8; k++) {
          total[0][k] += y.of[k];
          total[1][k] = fmaf(y.of[k], y.of[k], total[1][k]);
        }
      }
    };
    if (LOADS)
      each(units, after, arrays.added, BACKWARD && ADDED, finish);
    else
#pragma unroll
      for (int number = 0; number < EACH; number++)
        if (start + number * LANES < at.points) finish(number, {}, {});
    // A thread writes the next boards where it has just read these.
  }

  all_sync();  // nobody needs the rows any more
  auto& parts = *(float(*)[TEAMS * LANES][2 * CHANNELS])shared.rows;
  if (start < LANES)
#pragma unroll
    for (int k = 0; k < 16; k++) parts[team * LANES + start][k / 8 * CHANNELS + eight * 8 + k % 8] = total[k / 8][k % 8];
  all_sync();
  for (int k = threadIdx.x; k < 2 * CHANNELS; k += WORKERS) {
    float sum = 0.0f;
    for (int part = 0; part < TEAMS * LANES; part++) sum += parts[part][k];
    for (int part = blockIdx.x; part < PARTS; part += gridDim.x)
      arrays.sums[part * 2 * CHANNELS + k] = part == blockIdx.x ? sum : 0.0f;
  }
}

__device__ inline void run_all(const Arrays& arrays) {
  SHARED_MEMORY
  run(shared.stages, shared.rows, [&] { work(shared, arrays); }, [&] { fetch_all(shared.stages, arrays); });
}

#if !BACKWARD
extern "C" __global__ void __launch_bounds__(THREADS, 1) forward(
    const uint4* x, const uint4* added, const bf16* weights, const float* numbers, uint4* a, uint4* y, float* sums) {
  run_all({x, nullptr, nullptr, added, weights, numbers, a, y, sums});
}
#else
extern "C" __global__ void __launch_bounds__(THREADS, 1) backward(
    const uint4* x, const uint4* y, const uint4* dy, const uint4* added, const bf16* weights, const float* numbers, uint4* g,
    uint4* dx, float* sums) {
  run_all({x, y, dy, added, weights, numbers, g, dx, sums});
}
#endif
