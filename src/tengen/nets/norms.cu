// Batch normalisation in training, with the addition before it and the activation after it: two passes over the numbers
// forward and two backward, each pair with a small program between that adds up what the blocks found. See
// nets/norms_gpu.py for the arguments.
//
// Defined by the caller: TYPE (float or bf16) of the activations, THREADS in a block, VECTOR (numbers that a thread reads
// at once), ROWS (points of all boards), CHANNELS that are normalised, ACTIVATION, ADDED (0 nothing, 1 a number for each
// of the input, 2 a vector for each board of POINTS rows), MASKED (whether `on` says which rows are on a board), and for
// inputs with more channels WIDTH of them, of which the norm's begin at FIRST.

#ifndef PARTS
typedef Numbers<TYPE, VECTOR> Vector;
constexpr int GROUPS = CHANNELS / VECTOR, AT_ONCE = THREADS / GROUPS;

#if MASKED
#define MASK_IN const u8* on,
#define IS_ON(row) (on[row] != 0)
#else
#define MASK_IN
#define IS_ON(row) true
#endif

// The rows that a thread looks at. All blocks move through the array together, from the end to the beginning if
// BACKWARDS: what the program before wrote or read last is still in the cache.
struct Walk {
  __device__ static int steps() { return (ROWS + AT_ONCE * gridDim.x - 1) / (AT_ONCE * gridDim.x); }
  __device__ static int group() { return threadIdx.x % GROUPS; }
  // -1: none
  __device__ static int row(int step) {
    const int row = (step * gridDim.x + blockIdx.x) * AT_ONCE + threadIdx.x / GROUPS;
    if (threadIdx.x >= AT_ONCE * GROUPS || row >= ROWS) return -1;
    return BACKWARDS ? ROWS - 1 - row : row;
  }
};

// The channels of this thread in a row of an array, of which each row has `width`.
__device__ inline Vector* at(TYPE* array, int row, int width, int first) {
  return (Vector*)(array + (long long)row * width + first + Walk::group() * VECTOR);
}
__device__ inline const Vector* at(const TYPE* array, int row, int width, int first) {
  return (const Vector*)(array + (long long)row * width + first + Walk::group() * VECTOR);
}

struct Channels {
  float at[VECTOR];
  __device__ explicit Channels(const float* array) {
#pragma unroll
    for (int i = 0; i < VECTOR; i++) at[i] = array[Walk::group() * VECTOR + i];
  }
};
#endif

#if NORM_MOMENTS || NORM_SUMS
// Adds up two numbers per channel over the threads of a block: partials[block][2][CHANNELS].
__device__ inline void put_sums(const float* one, const float* two, float* partials) {
  __shared__ float parts[AT_ONCE * 2 * CHANNELS];
  if (threadIdx.x < AT_ONCE * GROUPS) {
    float* mine = parts + threadIdx.x / GROUPS * 2 * CHANNELS + Walk::group() * VECTOR;
#pragma unroll
    for (int i = 0; i < VECTOR; i++) {
      mine[i] = one[i];
      mine[CHANNELS + i] = two[i];
    }
  }
  __syncthreads();
  for (int k = threadIdx.x; k < 2 * CHANNELS; k += THREADS) {
    float sum = 0.0f;
#pragma unroll 8
    for (int part = 0; part < AT_ONCE; part++) sum += parts[part * 2 * CHANNELS + k];
    partials[blockIdx.x * 2 * CHANNELS + k] = sum;
  }
}
#endif

#if NORM_MOMENTS
// Sums and sums of squares of x + added, and x + added.
extern "C" __global__ void __launch_bounds__(THREADS) norm_moments(
    const TYPE* x,
#if ADDED
    const TYPE* added,
#endif
    MASK_IN float* partials
#if ADDED
    , TYPE* total
#endif
) {
  float sums[VECTOR], squares[VECTOR];
#pragma unroll
  for (int i = 0; i < VECTOR; i++) sums[i] = squares[i] = 0.0f;
  const int steps = Walk::steps();
  for (int step = 0; step < steps; step += REPEATS) {
    Vector numbers[REPEATS];
#if ADDED
    Vector more[REPEATS];
#endif
#pragma unroll
    for (int k = 0; k < REPEATS; k++) {
      const int row = Walk::row(step + k);
      if (row < 0) continue;
      numbers[k] = *at(x, row, WIDTH, FIRST);
#if ADDED
      more[k] = *at(added, ADDED == 2 ? row / POINTS : row, CHANNELS, 0);
#endif
    }
#pragma unroll
    for (int k = 0; k < REPEATS; k++) {
      const int row = Walk::row(step + k);
      if (row < 0) continue;
#if ADDED
#pragma unroll
      for (int i = 0; i < VECTOR; i++)
        from_float(to_float(numbers[k].at[i]) + to_float(more[k].at[i]), numbers[k].at[i]);
      *at(total, row, CHANNELS, 0) = numbers[k];
#endif
      if (!IS_ON(row)) continue;
#pragma unroll
      for (int i = 0; i < VECTOR; i++) {
        const float number = to_float(numbers[k].at[i]);
        sums[i] += number;
        squares[i] += number * number;
      }
    }
  }
  put_sums(sums, squares, partials);
}
#endif

#if NORM_APPLY
// activation(x * factor + addend).
extern "C" __global__ void __launch_bounds__(THREADS) norm_apply(
    const TYPE* x, const float* factors, const float* addends, MASK_IN TYPE* out) {
  const int steps = Walk::steps();
  const Channels factor(factors), addend(addends);
  for (int step = 0; step < steps; step += REPEATS) {
    Vector numbers[REPEATS];
#pragma unroll
    for (int k = 0; k < REPEATS; k++)
      if (Walk::row(step + k) >= 0) numbers[k] = *at(x, Walk::row(step + k), WIDTH, FIRST);
#pragma unroll
    for (int k = 0; k < REPEATS; k++) {
      const int row = Walk::row(step + k);
      if (row < 0) continue;
      const bool there = IS_ON(row);
#pragma unroll
      for (int i = 0; i < VECTOR; i++) {
        const float number = activate(to_float(numbers[k].at[i]) * factor.at[i] + addend.at[i]);
        from_float(there ? number : 0.0f, numbers[k].at[i]);
      }
      *at(out, row, CHANNELS, 0) = numbers[k];
    }
  }
}
#endif

#if NORM_SUMS || NORM_GRADIENT
// The derivative of the activation; 1/2 where relu has none, as JAX's maximum.
__device__ inline float slope(float x) {
  if (ACTIVATION == 0) return x > 0.0f ? 1.0f : x == 0.0f ? 0.5f : 0.0f;
  if (ACTIVATION == 2) {
    const float share = 1.0f / (1.0f + expf(-x));
    return share * (1.0f + x * (1.0f - share));
  }
  if (x > 20.0f) return 1.0f;
  const float e = expf(x), n = e * (e + 2.0f), inverse = 1.0f / (n + 2.0f);
  return (n + 4.0f * x * e * (1.0f + e) * inverse) * inverse;
}
#endif

#if NORM_SUMS
// With d the gradient of what the activation reads: sums of d and of d (x - mean). `change` is that of the output.
extern "C" __global__ void __launch_bounds__(THREADS) norm_sums(
    const TYPE* x, const TYPE* change, const float* factors, const float* addends, const float* means,
    MASK_IN float* partials) {
  float sums[VECTOR], products[VECTOR];
#pragma unroll
  for (int i = 0; i < VECTOR; i++) sums[i] = products[i] = 0.0f;
  const Channels factor(factors), addend(addends), mean(means);
  const int steps = Walk::steps();
  for (int step = 0; step < steps; step += REPEATS) {
    Vector numbers[REPEATS], changes[REPEATS];
#pragma unroll
    for (int k = 0; k < REPEATS; k++) {
      const int row = Walk::row(step + k);
      if (row < 0) continue;
      numbers[k] = *at(x, row, WIDTH, FIRST);
      changes[k] = *at(change, row, CHANNELS, 0);
    }
#pragma unroll
    for (int k = 0; k < REPEATS; k++) {
      const int row = Walk::row(step + k);
      if (row < 0 || !IS_ON(row)) continue;
#pragma unroll
      for (int i = 0; i < VECTOR; i++) {
        const float number = to_float(numbers[k].at[i]);
        const float d = to_float(changes[k].at[i]) * slope(number * factor.at[i] + addend.at[i]);
        sums[i] += d;
        products[i] += d * (number - mean.at[i]);
      }
    }
  }
  put_sums(sums, products, partials);
}
#endif

#if NORM_GRADIENT
// The gradient of x: factor * d + slope_x * x + rest, plus `change_total` if the sum has other uses.
extern "C" __global__ void __launch_bounds__(THREADS) norm_gradient(
    const TYPE* x, const TYPE* change, const float* factors, const float* addends, const float* slopes,
    const float* rests,
#if FORKS
    const TYPE* change_total,
#endif
    MASK_IN TYPE* out) {
  const Channels factor(factors), addend(addends), slope_x(slopes), rest(rests);
  const int steps = Walk::steps();
  for (int step = 0; step < steps; step += REPEATS) {
    Vector numbers[REPEATS], changes[REPEATS];
#if FORKS
    Vector more[REPEATS];
#endif
#pragma unroll
    for (int k = 0; k < REPEATS; k++) {
      const int row = Walk::row(step + k);
      if (row < 0) continue;
      numbers[k] = *at(x, row, WIDTH, FIRST);
      changes[k] = *at(change, row, CHANNELS, 0);
#if FORKS
      more[k] = *at(change_total, row, CHANNELS, 0);
#endif
    }
#pragma unroll
    for (int k = 0; k < REPEATS; k++) {
      const int row = Walk::row(step + k);
      if (row < 0) continue;
      const bool there = IS_ON(row);
#pragma unroll
      for (int i = 0; i < VECTOR; i++) {
        const float number = to_float(numbers[k].at[i]);
        const float d = to_float(changes[k].at[i]) * slope(number * factor.at[i] + addend.at[i]);
        float found = there ? factor.at[i] * d + (slope_x.at[i] * number + rest.at[i]) : 0.0f;
#if FORKS
        found += to_float(more[k].at[i]);
#endif
        from_float(found, numbers[k].at[i]);
      }
      *at(out, row, CHANNELS, 0) = numbers[k];
    }
  }
}
#endif

#if NORM_FINISH || NORM_SLOPES
// The sums of all PARTS blocks. A warp reads the numbers of 32 channels at once; threads of the first warp get them.
__device__ inline void total(const float* partials, float& one, float& two) {
  __shared__ float sums[2][THREADS];
  const int channel = blockIdx.x * 32 + threadIdx.x % 32;
  one = two = 0.0f;
  if (channel < CHANNELS)
#pragma unroll 4
    for (int part = threadIdx.x / 32; part < PARTS; part += THREADS / 32) {
      one += partials[part * 2 * CHANNELS + channel];
      two += partials[(part * 2 + 1) * CHANNELS + channel];
    }
  sums[0][threadIdx.x] = one;
  sums[1][threadIdx.x] = two;
  __syncthreads();
  if (threadIdx.x >= 32) return;
  for (int k = threadIdx.x + 32; k < THREADS; k += 32) {
    one += sums[0][k];
    two += sums[1][k];
  }
}

#if MASKED
#define COUNT_IN const float* count,
#define COUNT count[0]
#else
#define COUNT_IN
#define COUNT ((float)(ROWS))
#endif
#endif

#if NORM_FINISH
// Mean and variance, and the factor and the addend that they make of the norm's `scale` and `shift`.
extern "C" __global__ void __launch_bounds__(THREADS) norm_finish(
    const float* partials, const float* scale, const float* shift, COUNT_IN float* mean, float* variance,
    float* factor, float* addend) {
  float sum, square;
  total(partials, sum, square);
  const int channel = blockIdx.x * 32 + threadIdx.x;
  if (threadIdx.x >= 32 || channel >= CHANNELS) return;
  const float middle = sum / COUNT, spread = fmaxf(square / COUNT - middle * middle, 0.0f);
  mean[channel] = middle;
  // fmaxf drops a NaN.
  variance[channel] = square == square ? spread : square;
  factor[channel] = scale[channel] / sqrtf(spread + (float)(EPSILON));
  addend[channel] = shift[channel] - middle * factor[channel];
}
#endif

#if NORM_SLOPES
// The gradients of `scale` and `shift`, and what norm_gradient needs: factor and addend of x.
extern "C" __global__ void __launch_bounds__(THREADS) norm_slopes(
    const float* partials, const float* mean, const float* variance, const float* factor, COUNT_IN float* of_scale,
    float* of_shift, float* slope_x, float* rest) {
  float sum, product;
  total(partials, sum, product);
  const int channel = blockIdx.x * 32 + threadIdx.x;
  if (threadIdx.x >= 32 || channel >= CHANNELS) return;
  const float inverse = 1.0f / sqrtf(variance[channel] + (float)(EPSILON));
  of_scale[channel] = product * inverse;
  of_shift[channel] = sum;
  const float steep = -factor[channel] * product * inverse * inverse / COUNT;
  slope_x[channel] = steep;
  rest[channel] = -factor[channel] * sum / COUNT - steep * mean[channel];
}
#endif
