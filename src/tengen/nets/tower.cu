// A whole residual tower, from the input planes to the neck, as one program for Hopper GPUs: the activations of a few
// boards stay in shared memory, weights pass by, and tensor cores (wgmma) multiply. See nets/tower.py for the arguments.
//
// The rows, teams and stages are those of nets/hopper.cuh.
//
// Defined by the caller besides: INPUTS, POOLED channels (0: none), OUTPUTS of the neck, SIDE of the board as a pool is scaled, LAYERS
// and KINDS (of each layer, as below), BATCH, STREAM_ROWS of the residual stream in shared memory (0: it is in registers) and SHARED
// (bytes of shared memory).

enum Kind { STEM, FIRST, SECOND, POOLING, SECOND_POOLED, NECK };

constexpr int REGULAR = CHANNELS - POOLED;
static_assert(OUTPUTS <= CHANNELS && INPUTS <= CHANNELS, "nothing is wider than the tower");
static_assert(STREAM_ROWS == 0 || STREAM_ROWS == BOARDS * POINTS + 1, "its last row takes what empty ones would get");
#if POOLED
constexpr int PAIRS = IN_TEAM * POOLED / 2;  // of pooled channels of all boards of a team
constexpr int PARTS = TEAM / PAIRS < 12 ? TEAM / PAIRS : 12;  // of the points, each of which a thread pools
static_assert(PARTS > 0, "a thread for each pair");
#endif

// In shared memory. Eight channels of a row are 16 bytes, the unit of the tensor cores.
struct Shared {
  Stages stages;
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
};

static_assert(sizeof(Shared) <= SHARED, "as nets/tower.py counts it");

__constant__ u8 kinds[LAYERS] = KINDS;
constexpr int STEM_SLICES = INPUTS / 16, REGULAR_SLICES = (REGULAR + 31) / 32 * 2;
// How many inputs of the dense layer of a pool are in a stage.
constexpr int POOL_STAGE = SLICES * SLICE / REGULAR;

__device__ inline void fetch_weights(Stages& stages, const bf16* weights) {
  Fetching fetching{stages};
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
  Weights pipeline(shared.stages, weights);
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
  run(shared.stages, shared.rows, [&] { work(shared, x, weights, numbers, out); }, [&] { fetch_weights(shared.stages, weights); });
}
