// Boards of Go as bits, in the registers of one thread. The caller defines SIZE.

// A board as bits, row by row. One column more than there are points separates the rows.
constexpr int STRIDE = SIZE + 1;
constexpr int WORDS = (SIZE * STRIDE + 31) / 32;
constexpr int NOWHERE = -1;

#if SIZE > 11
#define ONCE __noinline__  // a program for a large board, with everything inlined, would take long to compile
#else
#define ONCE
#endif

struct Bits { u32 word[WORDS]; };

__device__ constexpr u32 inside(int word) {
  u32 found = 0;
  for (int bit = 0; bit < 32; bit++) {
    const int place = word * 32 + bit;
    if (place < SIZE * STRIDE && place % STRIDE < SIZE) found |= 1u << bit;
  }
  return found;
}
template <int... K> struct Words {};
template <int N, int... K> struct Count : Count<N - 1, N - 1, K...> {};
template <int... K> struct Count<0, K...> { typedef Words<K...> type; };
template <int... K> __device__ Bits whole_board(Words<K...>) { return {{inside(K)...}}; }
__device__ Bits on_board() { return whole_board(typename Count<WORDS>::type()); }

#define EACH_WORD(expression)                                          \
  Bits made;                                                           \
  _Pragma("unroll") for (int k = 0; k < WORDS; k++) made.word[k] = (expression); \
  return made;

__device__ int place_of(int point) { return point / SIZE * STRIDE + point % SIZE; }
__device__ Bits none() { EACH_WORD(0) }
__device__ Bits one(int place) { EACH_WORD(k == place >> 5 ? 1u << (place & 31) : 0) }
__device__ Bits operator&(const Bits& a, const Bits& b) { EACH_WORD(a.word[k] & b.word[k]) }
__device__ Bits operator|(const Bits& a, const Bits& b) { EACH_WORD(a.word[k] | b.word[k]) }
__device__ Bits without(const Bits& a, const Bits& b) { EACH_WORD(a.word[k] & ~b.word[k]) }
__device__ int count(const Bits& bits) {
  int sum = 0;
#pragma unroll
  for (int k = 0; k < WORDS; k++) sum += __popc(bits.word[k]);
  return sum;
}
__device__ bool any(const Bits& bits) {
  u32 all = 0;
#pragma unroll
  for (int k = 0; k < WORDS; k++) all |= bits.word[k];
  return all != 0;
}
// Finding the word by its number would need memory, because registers have none.
__device__ bool has(const Bits& bits, int place) { return any(bits & one(place)); }
__device__ bool equal(const Bits& a, const Bits& b) {
  u32 differ = 0;
#pragma unroll
  for (int k = 0; k < WORDS; k++) differ |= a.word[k] ^ b.word[k];
  return differ == 0;
}
__device__ int lowest(const Bits& bits) {  // NOWHERE if there is none
  int found = NOWHERE;
#pragma unroll
  for (int k = WORDS - 1; k >= 0; k--)
    if (bits.word[k]) found = k * 32 + __ffs(bits.word[k]) - 1;
  return found;
}

// The points next to these.
__device__ Bits around(const Bits& bits) {
  const Bits board = on_board();
  EACH_WORD((bits.word[k] << 1 | bits.word[k] >> 1 | bits.word[k] << STRIDE | bits.word[k] >> STRIDE |
             (k > 0 ? bits.word[k - 1] >> 31 | bits.word[k - 1] >> (32 - STRIDE) : 0) |
             (k < WORDS - 1 ? bits.word[k + 1] << 31 | bits.word[k + 1] << (32 - STRIDE) : 0)) &
            board.word[k])
}
// The points next to one: a pattern of four, moved to its place.
__device__ Bits next_to(int place) {
  const Bits board = on_board();
  constexpr u64 FOUR = 1 | (u64)1 << (STRIDE - 1) | (u64)1 << (STRIDE + 1) | (u64)1 << 2 * STRIDE;
  Bits made;
#pragma unroll
  for (int k = 0; k < WORDS; k++) {
    const int by = place - STRIDE - 32 * k;
    made.word[k] = (by >= 32 || by <= -64 ? 0 : (u32)(by < 0 ? FOUR >> -by : FOUR << by)) & board.word[k];
  }
  return made;
}
// The points next to at least two of these.
__device__ Bits beside_two(const Bits& bits) {
  const Bits board = on_board();
  Bits made;
#pragma unroll
  for (int k = 0; k < WORDS; k++) {
    const u32 low = k > 0 ? bits.word[k - 1] : 0, here = bits.word[k], high = k < WORDS - 1 ? bits.word[k + 1] : 0;
    const u32 left = here << 1 | low >> 31, right = here >> 1 | high << 31;
    const u32 up = here << STRIDE | low >> (32 - STRIDE), down = here >> STRIDE | high << (32 - STRIDE);
    made.word[k] = ((left & right) | (up & down) | ((left | right) & (up | down))) & board.word[k];
  }
  return made;
}
// All points of `within` that are connected with `from` in it.
__device__ ONCE Bits connected(Bits from, const Bits& within) {
  for (;;) {
    const Bits wider = from | (around(from) & within);
    if (equal(wider, from)) return from;
    from = wider;
  }
}
// What is left of `some` without all that is connected with `from` in `within`.
__device__ ONCE Bits out_of_reach(Bits some, Bits from, const Bits& within) {
  for (;;) {
    some = without(some, from);
    if (!any(some)) return some;
    const Bits wider = from | (around(from) & within);
    if (equal(wider, from)) return some;
    from = wider;
  }
}
