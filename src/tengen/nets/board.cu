// What happens between the convolutions of a folded network: scale, shift and activation; global pooling with the bias
// that it gives; the heads. See nets/gpu.py for the arguments. Blocks begin with the last boards: those of the
// convolution before began with the first, so that what it wrote last is still in the cache.
//
// Defined by the caller: TYPE (float or bf16) of the activations, WEIGHT of the weights, THREADS in a block, VECTOR
// (numbers that a thread reads at once), CHANNELS of the input, ACTIVATION (0 relu, 1 mish, 2 silu), SHARED
// (bytes of shared memory, which the caller has counted too), and what each program says below.

__device__ inline float to_float(float x) { return x; }
__device__ inline void from_float(float x, float& out) { out = x; }

template <class T, int N>
struct alignas(sizeof(T) * N) Numbers { T at[N]; };
typedef Numbers<TYPE, VECTOR> Vector;

__device__ inline int block_backwards() { return gridDim.x - 1 - blockIdx.x; }

#ifdef AFFINE
// activation(x * scale + shift) of ROWS rows of CHANNELS numbers; a block does REPEATS * (THREADS / GROUPS) rows.
constexpr int GROUPS = CHANNELS / VECTOR, AT_ONCE = THREADS / GROUPS;

extern "C" __global__ void __launch_bounds__(THREADS) affine(
    const TYPE* x, const float* scales, const float* shifts, TYPE* out) {
  const int group = threadIdx.x % GROUPS, first = block_backwards() * REPEATS * AT_ONCE + threadIdx.x / GROUPS;
  if (threadIdx.x >= AT_ONCE * GROUPS) return;
  Vector numbers[REPEATS];
  for (int k = 0; k < REPEATS; k++) {
    const int row = first + k * AT_ONCE;
    if (row < ROWS) numbers[k] = ((const Vector*)x)[(long long)row * GROUPS + group];
  }
  float scale[VECTOR], shift[VECTOR];
  for (int i = 0; i < VECTOR; i++) {
    scale[i] = scales[group * VECTOR + i];
    shift[i] = shifts[group * VECTOR + i];
  }
  for (int k = 0; k < REPEATS; k++) {
    const int row = first + k * AT_ONCE;
    if (row >= ROWS) break;
    for (int i = 0; i < VECTOR; i++)
      from_float(activate(to_float(numbers[k].at[i]) * scale[i] + shift[i]), numbers[k].at[i]);
    ((Vector*)out)[(long long)row * GROUPS + group] = numbers[k];
  }
}
#else

// The vectors of COUNT channels from FIRST on that this thread looks at. A few are read early, so that reading them
// does not wait for anything; many are read when they are needed.
template <int FIRST, int COUNT>
struct Part {
  static constexpr int GROUPS = COUNT / VECTOR, AT_ONCE = THREADS / GROUPS;
  static constexpr int EACH = (POINTS + AT_ONCE - 1) / AT_ONCE;
  static constexpr bool EARLY = EACH <= 8;
  Vector early[EARLY ? EACH : 1];

  __device__ int group() const { return threadIdx.x % GROUPS; }
  __device__ int point(int k) const { return threadIdx.x / GROUPS + k * AT_ONCE; }
  __device__ bool has(int k) const { return threadIdx.x < AT_ONCE * GROUPS && point(k) < POINTS; }
  __device__ Vector read(const TYPE* board, int k) const {
    return *(const Vector*)(board + point(k) * CHANNELS + FIRST + group() * VECTOR);
  }
  __device__ void begin(const TYPE* board) {
    if (EARLY)
#pragma unroll
      for (int k = 0; k < EACH; k++)
        if (has(k)) early[k] = read(board, k);
  }
  __device__ Vector get(const TYPE* board, int k) const { return EARLY ? early[EARLY ? k : 0] : read(board, k); }
};

// Numbers of several threads that belong to the same of COUNT outputs, combined. A barrier must come before `total`.
template <int COUNT, int WIDTH, class Operation>
struct Combined {
  static constexpr int GROUPS = COUNT / WIDTH, AT_ONCE = THREADS / GROUPS;
  static constexpr bool SHUFFLES = GROUPS <= 32 && (GROUPS & (GROUPS - 1)) == 0;
  static constexpr int PARTS = SHUFFLES ? THREADS / 32 : AT_ONCE;
  float parts[PARTS * COUNT];

  // Thread t has numbers for the outputs from t % GROUPS * WIDTH on.
  __device__ void put(float* numbers) {
    const int group = threadIdx.x % GROUPS;
    if (SHUFFLES)
#pragma unroll
      for (int distance = 16; distance >= GROUPS; distance >>= 1)
#pragma unroll
        for (int i = 0; i < WIDTH; i++)
          numbers[i] = Operation::of(numbers[i], __shfl_xor_sync(~0u, numbers[i], distance));
    const int part = SHUFFLES ? threadIdx.x / 32 : threadIdx.x / GROUPS;
    if (SHUFFLES ? threadIdx.x % 32 < GROUPS : part < AT_ONCE)
#pragma unroll
      for (int i = 0; i < WIDTH; i++) parts[part * COUNT + group * WIDTH + i] = numbers[i];
  }
  __device__ float total(int output) const {
    float total = parts[output];
    for (int part = 1; part < PARTS; part++) total = Operation::of(total, parts[part * COUNT + output]);
    return total;
  }
};

struct Add { __device__ static float of(float a, float b) { return a + b; } };
struct Most { __device__ static float of(float a, float b) { return fmaxf(a, b); } };

// Means and maxima over the points of a board, of COUNT channels from FIRST on, after shift and activation.
template <int FIRST, int COUNT>
struct Pool {
  Combined<COUNT, VECTOR, Add> sums;
  Combined<COUNT, VECTOR, Most> largests;

  // A barrier must come before `mean` and `largest`.
  __device__ void put(const Part<FIRST, COUNT>& part, const TYPE* board, const WEIGHT* shifts) {
    float sum[VECTOR], high[VECTOR];
#pragma unroll
    for (int i = 0; i < VECTOR; i++) {
      sum[i] = 0.0f;
      high[i] = -INFINITE;
    }
#pragma unroll(Part<FIRST, COUNT>::EARLY ? 8 : 4)
    for (int k = 0; k < Part<FIRST, COUNT>::EACH; k++)
      if (part.has(k)) {
        const Vector now = part.get(board, k);
#pragma unroll
        for (int i = 0; i < VECTOR; i++) {
          const float shift = shifts ? to_float(shifts[FIRST + part.group() * VECTOR + i]) : 0.0f;
          const float value = activate(to_float(now.at[i]) + shift);
          sum[i] += value;
          high[i] = fmaxf(high[i], value);
        }
      }
    sums.put(sum);
    largests.put(high);
  }
  __device__ float mean(int channel) const { return sums.total(channel) / POINTS; }
  __device__ float largest(int channel) const { return largests.total(channel); }
};

// A dense layer of INPUTS numbers in shared memory. Its weights can be read early, like the board.
template <int INPUTS, int OUTPUTS>
struct Dense {
  // Reading 16 bytes at once pays where the sums of all threads can then be combined by shuffles. It is also how a
  // layer with more outputs than there are threads is done.
  static constexpr int WIDEST = 16 / sizeof(WEIGHT);
  static constexpr bool SHUFFLES = (OUTPUTS / WIDEST & (OUTPUTS / WIDEST - 1)) == 0;
  static constexpr bool WIDE = OUTPUTS % WIDEST == 0 && (SHUFFLES || OUTPUTS > THREADS);
  static constexpr int WIDTH = WIDE ? WIDEST : 1;
  typedef Numbers<WEIGHT, WIDTH> Weights;
  typedef Combined<OUTPUTS, WIDTH, Add> Sums;
  static constexpr int GROUPS = Sums::GROUPS, AT_ONCE = Sums::AT_ONCE, EACH = (INPUTS + AT_ONCE - 1) / AT_ONCE;
  static constexpr bool EARLY = EACH <= 8;
  Weights early[EARLY ? EACH : 1];

  __device__ int input(int k) const { return threadIdx.x / GROUPS + k * AT_ONCE; }
  __device__ bool has(int k) const { return threadIdx.x < AT_ONCE * GROUPS && input(k) < INPUTS; }
  __device__ Weights read(const WEIGHT* kernel, int k) const {
    return ((const Weights*)kernel)[input(k) * GROUPS + threadIdx.x % GROUPS];
  }
  __device__ void begin(const WEIGHT* kernel) {
    if (EARLY)
#pragma unroll
      for (int k = 0; k < EACH; k++)
        if (has(k)) early[k] = read(kernel, k);
  }
  // A barrier must come before the sums' totals, which are the outputs.
  __device__ void put(const float* inputs, const WEIGHT* kernel, Sums& sums) const {
    float sum[WIDTH];
#pragma unroll
    for (int i = 0; i < WIDTH; i++) sum[i] = 0.0f;
#pragma unroll(EARLY ? 8 : 16)
    for (int k = 0; k < EACH; k++)
      if (has(k)) {
        const Weights now = EARLY ? early[EARLY ? k : 0] : read(kernel, k);
#pragma unroll
        for (int i = 0; i < WIDTH; i++) sum[i] += inputs[input(k)] * to_float(now.at[i]);
      }
    sums.put(sum);
  }
};
#endif

#ifdef POOL_BIAS
// Of REGULAR channels and POOLED ones: activation(regular + bias of the pool), and the pool. SIDE is the board's.
extern "C" __global__ void __launch_bounds__(THREADS) pool_bias(
    const TYPE* x, const WEIGHT* kernel SHIFT_IN, TYPE* out, TYPE* pool_out) {
  __shared__ Pool<REGULAR, POOLED> pool;
  __shared__ float pooled[3 * POOLED], bias[REGULAR];
  __shared__ Dense<3 * POOLED, REGULAR>::Sums sums;
  static_assert(sizeof(pool) + sizeof(pooled) + sizeof(bias) + sizeof(sums) == SHARED, "as nets/gpu.py counts it");
  const long long board = block_backwards();
  const TYPE* input = x + board * POINTS * CHANNELS;
  const WEIGHT* shift = SHIFT;
  Part<REGULAR, POOLED> to_pool;
  Part<0, REGULAR> regular;
  Dense<3 * POOLED, REGULAR> dense;
  to_pool.begin(input);
  regular.begin(input);
  dense.begin(kernel);
  pool.put(to_pool, input, shift);
  __syncthreads();
  for (int channel = threadIdx.x; channel < POOLED; channel += THREADS) {
    const float numbers[3] = {pool.mean(channel), pool.mean(channel) * (float)(SIDE), pool.largest(channel)};
#pragma unroll
    for (int kind = 0; kind < 3; kind++) {
      pooled[kind * POOLED + channel] = numbers[kind];
      from_float(numbers[kind], pool_out[(board * 3 + kind) * POOLED + channel]);
    }
  }
  __syncthreads();
  dense.put(pooled, kernel, sums);
  __syncthreads();
  for (int channel = threadIdx.x; channel < REGULAR; channel += THREADS)
    bias[channel] = sums.total(channel) + (shift ? to_float(shift[channel]) : 0.0f);
  __syncthreads();
#pragma unroll(Part<0, REGULAR>::EARLY ? 8 : 4)
  for (int k = 0; k < Part<0, REGULAR>::EACH; k++)
    if (regular.has(k)) {
      Vector now = regular.get(input, k);
      const int first = regular.group() * VECTOR;
#pragma unroll
      for (int i = 0; i < VECTOR; i++) from_float(activate(to_float(now.at[i]) + bias[first + i]), now.at[i]);
      *(Vector*)(out + (board * POINTS + regular.point(k)) * REGULAR + first) = now;
    }
}
#endif

#ifdef HEADS
// Of POLICY regular channels, POLICY pooled ones and VALUE ones. KINDS policies of PER_POINT logits per point and EXTRA
// others; UNITS of the hidden layer.
constexpr int OUTPUTS = KINDS * PER_POINT, ACTIONS = POINTS * PER_POINT + EXTRA;

extern "C" __global__ void __launch_bounds__(THREADS) heads(
    const TYPE* x, const WEIGHT* shift, const WEIGHT* bias_kernel, const WEIGHT* point_kernel EXTRA_IN,
    const WEIGHT* hidden_kernel, const WEIGHT* hidden_bias OWNERSHIP_IN, float* policies,
    TYPE* hidden_out OWNERSHIP_OUT) {
  __shared__ Pool<POLICY, POLICY> pool;
  __shared__ Pool<2 * POLICY, VALUE> values;
  __shared__ Dense<3 * POLICY, POLICY>::Sums bias_sums;
  __shared__ Dense<3 * VALUE, UNITS>::Sums hidden_sums;
  __shared__ float pooled[3 * POLICY], meant[3 * VALUE], bias[POLICY], of_point[POLICY * OUTPUTS];
  static_assert(sizeof(pool) + sizeof(values) + sizeof(bias_sums) + sizeof(hidden_sums) + sizeof(pooled) +
                sizeof(meant) + sizeof(bias) + sizeof(of_point) == SHARED, "as nets/gpu.py counts it");
  const long long board = block_backwards();
  const TYPE* input = x + board * POINTS * CHANNELS;
  Part<POLICY, POLICY> to_pool;
  Part<2 * POLICY, VALUE> to_mean;
  Dense<3 * POLICY, POLICY> bias_dense;
  Dense<3 * VALUE, UNITS> hidden_dense;
  to_pool.begin(input);
  to_mean.begin(input);
  bias_dense.begin(bias_kernel);
  hidden_dense.begin(hidden_kernel);
  for (int k = threadIdx.x; k < POLICY * OUTPUTS; k += THREADS) of_point[k] = to_float(point_kernel[k]);
  pool.put(to_pool, input, shift);
  values.put(to_mean, input, shift);
  __syncthreads();
  for (int channel = threadIdx.x; channel < POLICY; channel += THREADS) {
    pooled[channel] = pool.mean(channel);
    pooled[POLICY + channel] = pool.mean(channel) * (float)(SIDE);
    pooled[2 * POLICY + channel] = pool.largest(channel);
  }
  for (int channel = THREADS - 1 - threadIdx.x; channel < VALUE; channel += THREADS) {
    const float mean = values.mean(channel);
    meant[channel] = mean;
    meant[VALUE + channel] = mean * (float)(SIDE);
    meant[2 * VALUE + channel] = mean * (float)(SQUARE);
  }
  __syncthreads();
  bias_dense.put(pooled, bias_kernel, bias_sums);
  hidden_dense.put(meant, hidden_kernel, hidden_sums);
#if EXTRA
  for (int output = threadIdx.x / 32; output < KINDS * EXTRA; output += THREADS / 32) {
    float sum = 0.0f;
    for (int k = threadIdx.x % 32; k < 3 * POLICY; k += 32)
      sum += pooled[k] * to_float(extra_kernel[k * KINDS * EXTRA + output]);
    for (int distance = 16; distance; distance >>= 1) sum += __shfl_xor_sync(~0u, sum, distance);
    if (threadIdx.x % 32 == 0)
      policies[(board * KINDS + output / EXTRA) * ACTIONS + POINTS * PER_POINT + output % EXTRA] = sum;
  }
#endif
  __syncthreads();
  for (int channel = threadIdx.x; channel < POLICY; channel += THREADS)
    bias[channel] = bias_sums.total(channel) + to_float(shift[channel]);
  for (int unit = THREADS - 1 - threadIdx.x; unit < UNITS; unit += THREADS)
    from_float(activate(hidden_sums.total(unit) + to_float(hidden_bias[unit])), hidden_out[board * UNITS + unit]);
  __syncthreads();
  for (int point = threadIdx.x; point < POINTS; point += THREADS) {
    float sums[OUTPUTS];
#pragma unroll
    for (int output = 0; output < OUTPUTS; output++) sums[output] = 0.0f;
#pragma unroll 4
    for (int group = 0; group < POLICY; group += VECTOR) {
      const Vector now = *(const Vector*)(input + point * CHANNELS + group);
#pragma unroll
      for (int i = 0; i < VECTOR; i++) {
        const float value = activate(to_float(now.at[i]) + bias[group + i]);
#pragma unroll
        for (int output = 0; output < OUTPUTS; output++)
          sums[output] += value * of_point[(group + i) * OUTPUTS + output];
      }
    }
#pragma unroll
    for (int output = 0; output < OUTPUTS; output++)
      policies[(board * KINDS + output / PER_POINT) * ACTIONS + point * PER_POINT + output % PER_POINT] = sums[output];
#if OWNERSHIP
    float owner = 0.0f;
#pragma unroll 4
    for (int group = 0; group < VALUE; group += VECTOR) {
      const Vector now = *(const Vector*)(input + point * CHANNELS + 2 * POLICY + group);
#pragma unroll
      for (int i = 0; i < VECTOR; i++)
        owner += activate(to_float(now.at[i]) + to_float(shift[2 * POLICY + group + i])) *
                 to_float(ownership[group + i]);
    }
    ownership_out[board * POINTS + point] = owner;
#endif
  }
}
#endif
