// What happens between the convolutions of a folded network: scale, shift and activation; global pooling with the bias
// that it gives; the heads. See nets/gpu.py for the arguments. Blocks begin with the last boards: those of the
// convolution before began with the first, so that what it wrote last is still in the cache.
//
// Defined by the caller: TYPE (float or bf16) of the activations, WEIGHT of the weights, THREADS in a block, VECTOR
// (numbers that a thread reads at once), CHANNELS of the input, ACTIVATION (0 relu, 1 mish, 2 silu), and what each
// program says below.

struct bf16 { u16 bits; };

__device__ inline float to_float(float x) { return x; }
__device__ inline float to_float(bf16 x) { return __uint_as_float((u32)x.bits << 16); }
__device__ inline void from_float(float x, float& out) { out = x; }
__device__ inline void from_float(float x, bf16& out) {
#ifdef EMULATED
  const u32 bits = __float_as_uint(x);
  out.bits = (bits & 0x7FFFFFFF) > 0x7F800000 ? 0x7FC0 : (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
#else
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(out.bits) : "f"(x));
#endif
}

__device__ inline float activate(float x) {
  if (ACTIVATION == 0) return fmaxf(x, 0.0f);
  if (ACTIVATION == 2) return x / (1.0f + expf(-x));
  if (x > 20.0f) return x;
  const float e = expf(x), n = e * (e + 2.0f);  // mish: x tanh(log(1 + e))
  return x * n / (n + 2.0f);
}

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

// Sums and maxima over the points of a board, of COUNT channels from FIRST on, after shift and activation.
template <int FIRST, int COUNT>
struct Pool {
  static constexpr int GROUPS = COUNT / VECTOR, AT_ONCE = THREADS / GROUPS;
  static constexpr bool SHUFFLES = GROUPS <= 32 && (GROUPS & (GROUPS - 1)) == 0;
  static constexpr int PARTS = SHUFFLES ? THREADS / 32 : AT_ONCE;
  float sums[PARTS * COUNT], largests[PARTS * COUNT];
  float mean[COUNT], largest[COUNT];

  // Each thread reads its part; a barrier must come before `finish`.
  __device__ void begin(const TYPE* board, const WEIGHT* shifts) {
    const int group = threadIdx.x % GROUPS, first = threadIdx.x / GROUPS;
    float shift[VECTOR], sum[VECTOR], high[VECTOR];
    for (int i = 0; i < VECTOR; i++) {
      shift[i] = shifts ? to_float(shifts[FIRST + group * VECTOR + i]) : 0.0f;
      sum[i] = 0.0f;
      high[i] = -INFINITE;
    }
    if (first < AT_ONCE)
      for (int point = first; point < POINTS; point += AT_ONCE) {
        const Vector x = *(const Vector*)(board + point * CHANNELS + FIRST + group * VECTOR);
        for (int i = 0; i < VECTOR; i++) {
          const float value = activate(to_float(x.at[i]) + shift[i]);
          sum[i] += value;
          high[i] = fmaxf(high[i], value);
        }
      }
    if (SHUFFLES)
      for (int distance = 16; distance >= GROUPS; distance >>= 1)
        for (int i = 0; i < VECTOR; i++) {
          sum[i] += __shfl_xor_sync(~0u, sum[i], distance);
          high[i] = fmaxf(high[i], __shfl_xor_sync(~0u, high[i], distance));
        }
    const int part = SHUFFLES ? threadIdx.x / 32 : first;
    if (SHUFFLES ? threadIdx.x % 32 < GROUPS : first < AT_ONCE)
      for (int i = 0; i < VECTOR; i++) {
        sums[part * COUNT + group * VECTOR + i] = sum[i];
        largests[part * COUNT + group * VECTOR + i] = high[i];
      }
  }

  __device__ void finish() {
    for (int channel = threadIdx.x; channel < COUNT; channel += THREADS) {
      float sum = 0.0f, high = -INFINITE;
      for (int part = 0; part < PARTS; part++) {
        sum += sums[part * COUNT + channel];
        high = fmaxf(high, largests[part * COUNT + channel]);
      }
      mean[channel] = sum / POINTS;
      largest[channel] = high;
    }
  }
};

// bias[OUTPUTS] of a pool of COUNT channels, by all threads; `parts` has room for a number of every thread.
template <int COUNT, int OUTPUTS>
__device__ void dense_of_pool(
    const float* mean, const float* largest, const WEIGHT* weights, float side, float* parts, float* bias) {
  constexpr int SHARES = OUTPUTS < THREADS ? THREADS / OUTPUTS : 1;
  for (int first = 0; first < OUTPUTS; first += THREADS) {
    const int output = first + threadIdx.x % (OUTPUTS < THREADS ? OUTPUTS : THREADS);
    const int share = OUTPUTS < THREADS ? threadIdx.x / OUTPUTS : 0;
    float sum = 0.0f;
    if (share < SHARES && output < OUTPUTS)
#pragma unroll 8
      for (int channel = share; channel < COUNT; channel += SHARES) {
        const WEIGHT* at = weights + channel * OUTPUTS + output;
        sum += mean[channel] * (to_float(at[0]) + side * to_float(at[COUNT * OUTPUTS]));
        sum += largest[channel] * to_float(at[2 * COUNT * OUTPUTS]);
      }
    parts[threadIdx.x] = sum;
    __syncthreads();
    if (share == 0 && output < OUTPUTS) {
      for (int other = 1; other < SHARES; other++) sum += parts[other * OUTPUTS + output];
      bias[output] = sum;
    }
    __syncthreads();
  }
}
#endif

#ifdef POOL_BIAS
// Of REGULAR channels and POOLED ones: activation(regular + bias of the pool), and the pool. SIDE is the board's.
extern "C" __global__ void __launch_bounds__(THREADS) pool_bias(
    const TYPE* x, const WEIGHT* dense SHIFT_IN, TYPE* out, TYPE* pool_out) {
  __shared__ Pool<REGULAR, POOLED> pool;
  __shared__ float parts[THREADS], bias[REGULAR];
  constexpr int GROUPS = REGULAR / VECTOR, ALL = POINTS * GROUPS, EACH = (ALL + THREADS - 1) / THREADS;
  constexpr bool EARLY = EACH * VECTOR * sizeof(TYPE) <= 128;  // few enough to wait in registers
  const long long board = block_backwards();
  const TYPE* input = x + board * POINTS * CHANNELS;
  Vector numbers[EARLY ? EACH : 1];
  if (EARLY)
    for (int k = 0; k < EACH; k++) {
      const int at = threadIdx.x + k * THREADS;
      if (at < ALL) numbers[k] = *(const Vector*)(input + at / GROUPS * CHANNELS + at % GROUPS * VECTOR);
    }
  pool.begin(input, SHIFT);
  __syncthreads();
  pool.finish();
  __syncthreads();
  for (int channel = threadIdx.x; channel < POOLED; channel += THREADS) {
    TYPE* to = pool_out + board * 3 * POOLED + channel;
    from_float(pool.mean[channel], to[0]);
    from_float(pool.mean[channel] * (float)(SIDE), to[POOLED]);
    from_float(pool.largest[channel], to[2 * POOLED]);
  }
  dense_of_pool<POOLED, REGULAR>(pool.mean, pool.largest, dense, (float)(SIDE), parts, bias);
  const WEIGHT* shift = SHIFT;
  if (shift) {
    for (int channel = threadIdx.x; channel < REGULAR; channel += THREADS) bias[channel] += to_float(shift[channel]);
    __syncthreads();
  }
  for (int k = 0; k < EACH; k++) {
    const int at = threadIdx.x + k * THREADS;
    if (at >= ALL) break;
    const int group = at % GROUPS;
    Vector now = EARLY ? numbers[EARLY ? k : 0] : *(const Vector*)(input + at / GROUPS * CHANNELS + group * VECTOR);
    for (int i = 0; i < VECTOR; i++)
      from_float(activate(to_float(now.at[i]) + bias[group * VECTOR + i]), now.at[i]);
    *(Vector*)(out + (board * ALL + at) * VECTOR) = now;
  }
}
#endif

#ifdef HEADS
// Of POLICY regular channels, POLICY pooled ones and VALUE ones. KINDS policies of PER_POINT logits per point and EXTRA
// others; UNITS of the hidden layer.
constexpr int OUTPUTS = KINDS * PER_POINT, ACTIONS = POINTS * PER_POINT + EXTRA;

extern "C" __global__ void __launch_bounds__(THREADS) heads(
    const TYPE* x, const WEIGHT* shift, const WEIGHT* bias_weights, const WEIGHT* point_weights EXTRA_IN,
    const WEIGHT* hidden_weights, const WEIGHT* hidden_bias OWNERSHIP_IN, float* policies, TYPE* hidden_out OWNERSHIP_OUT) {
  __shared__ Pool<POLICY, POLICY> pool;
  __shared__ Pool<2 * POLICY, VALUE> values;
  __shared__ float parts[THREADS], bias[POLICY], of_point[POLICY * OUTPUTS], shifts[CHANNELS];
  const long long board = block_backwards();
  const TYPE* input = x + board * POINTS * CHANNELS;
  for (int k = threadIdx.x; k < CHANNELS; k += THREADS) shifts[k] = to_float(shift[k]);
  for (int k = threadIdx.x; k < POLICY * OUTPUTS; k += THREADS) of_point[k] = to_float(point_weights[k]);
  pool.begin(input, shift);
  values.begin(input, shift);
  __syncthreads();
  pool.finish();
  values.finish();
  __syncthreads();
#if OWNERSHIP
  for (int point = threadIdx.x; point < POINTS; point += THREADS) {
    float sum = 0.0f;
    for (int group = 0; group < VALUE; group += VECTOR) {
      const Vector now = *(const Vector*)(input + point * CHANNELS + 2 * POLICY + group);
      for (int i = 0; i < VECTOR; i++)
        sum += activate(to_float(now.at[i]) + shifts[2 * POLICY + group + i]) * to_float(ownership[group + i]);
    }
    ownership_out[board * POINTS + point] = sum;
  }
#endif
  for (int unit = threadIdx.x; unit < UNITS; unit += THREADS) {
    float sum = to_float(hidden_bias[unit]);
#pragma unroll 8
    for (int channel = 0; channel < VALUE; channel++) {
      const WEIGHT* at = hidden_weights + channel * UNITS + unit;
      sum += values.mean[channel] * (to_float(at[0]) + (float)(SIDE) * to_float(at[VALUE * UNITS]) +
                                     (float)(SQUARE) * to_float(at[2 * VALUE * UNITS]));
    }
    from_float(activate(sum), hidden_out[board * UNITS + unit]);
  }
  dense_of_pool<POLICY, POLICY>(pool.mean, pool.largest, bias_weights, (float)(SIDE), parts, bias);
#if EXTRA
  for (int output = threadIdx.x; output < KINDS * EXTRA; output += THREADS) {
    float sum = 0.0f;
    for (int channel = 0; channel < POLICY; channel++) {
      const WEIGHT* at = extra_weights + channel * KINDS * EXTRA + output;
      sum += pool.mean[channel] * (to_float(at[0]) + (float)(SIDE) * to_float(at[POLICY * KINDS * EXTRA]));
      sum += pool.largest[channel] * to_float(at[2 * POLICY * KINDS * EXTRA]);
    }
    policies[(board * KINDS + output / EXTRA) * ACTIONS + POINTS * PER_POINT + output % EXTRA] = sum;
  }
#endif
  for (int point = threadIdx.x; point < POINTS; point += THREADS) {
    float sums[OUTPUTS];
    for (int output = 0; output < OUTPUTS; output++) sums[output] = 0.0f;
    for (int group = 0; group < POLICY; group += VECTOR) {
      const Vector now = *(const Vector*)(input + point * CHANNELS + group);
      for (int i = 0; i < VECTOR; i++) {
        const float value = activate(to_float(now.at[i]) + shifts[group + i] + bias[group + i]);
        for (int output = 0; output < OUTPUTS; output++) sums[output] += value * of_point[(group + i) * OUTPUTS + output];
      }
    }
    for (int output = 0; output < OUTPUTS; output++)
      policies[(board * KINDS + output / PER_POINT) * ACTIONS + point * PER_POINT + output % PER_POINT] = sums[output];
  }
}
#endif
