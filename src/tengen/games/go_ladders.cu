// The ladders of a batch of boards, as go_ladders.py reads them. See go_gpu.py for the arguments.
//
// The games of a block share one queue of ladders, from which each thread takes the next. A thread reads its ladder alone,
// depth first, on a board of bits.
//
// Defined by the caller: SIZE, BATCH, GAMES (per block), THREADS, MOVES, DEPTH and EXACT (the limits of a ladder), CHAIN (the
// type of a chain's number in memory). A point of `chains` is 0 if it is empty, otherwise 1 + 2 * root + colour, where
// root is a stone of the chain.

constexpr int POINTS = SIZE * SIZE;

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

__device__ int place_of(int point) { return point / SIZE * STRIDE + point % SIZE; }
__device__ bool has(const Bits& bits, int place) { return bits.word[place >> 5] >> (place & 31) & 1; }
__device__ Bits none() {
  Bits made;
#pragma unroll
  for (int k = 0; k < WORDS; k++) made.word[k] = 0;
  return made;
}
__device__ Bits one(int place) {
  Bits made;
#pragma unroll
  for (int k = 0; k < WORDS; k++) made.word[k] = k == place >> 5 ? 1u << (place & 31) : 0;
  return made;
}
__device__ int count_word(u32 x) {
  x -= x >> 1 & 0x55555555u;
  x = (x & 0x33333333u) + (x >> 2 & 0x33333333u);
  return ((x + (x >> 4)) & 0x0F0F0F0Fu) * 0x01010101u >> 24;
}
__device__ int count(const Bits& bits) {
  int sum = 0;
#pragma unroll
  for (int k = 0; k < WORDS; k++) sum += count_word(bits.word[k]);
  return sum;
}
__device__ bool any(const Bits& bits) {
  u32 all = 0;
#pragma unroll
  for (int k = 0; k < WORDS; k++) all |= bits.word[k];
  return all != 0;
}
__device__ int lowest(const Bits& bits) {  // NOWHERE if there is none
  int found = NOWHERE;
#pragma unroll
  for (int k = WORDS - 1; k >= 0; k--)
    if (bits.word[k]) found = k * 32 + count_word((bits.word[k] & (0u - bits.word[k])) - 1);
  return found;
}

#define EACH_WORD(expression)                                          \
  Bits made;                                                           \
  _Pragma("unroll") for (int k = 0; k < WORDS; k++) made.word[k] = (expression); \
  return made;

__device__ Bits operator&(const Bits& a, const Bits& b) { EACH_WORD(a.word[k] & b.word[k]) }
__device__ Bits operator|(const Bits& a, const Bits& b) { EACH_WORD(a.word[k] | b.word[k]) }
__device__ Bits without(const Bits& a, const Bits& b) { EACH_WORD(a.word[k] & ~b.word[k]) }

// The points next to these.
__device__ Bits around(const Bits& bits) {
  const Bits board = on_board();
  EACH_WORD((bits.word[k] << 1 | bits.word[k] >> 1 | bits.word[k] << STRIDE | bits.word[k] >> STRIDE |
             (k > 0 ? bits.word[k - 1] >> 31 | bits.word[k - 1] >> (32 - STRIDE) : 0) |
             (k < WORDS - 1 ? bits.word[k + 1] << 31 | bits.word[k + 1] << (32 - STRIDE) : 0)) &
            board.word[k])
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
__device__ bool equal(const Bits& a, const Bits& b) {
  u32 differ = 0;
#pragma unroll
  for (int k = 0; k < WORDS; k++) differ |= a.word[k] ^ b.word[k];
  return differ == 0;
}
// All points of `within` that are connected with `from` in it.
__device__ ONCE Bits connected(Bits from, const Bits& within) {
  for (;;) {
    const Bits wider = from | (around(from) & within);
    if (equal(wider, from)) return from;
    from = wider;
  }
}
// Whether the chain of these stones of `within` has a liberty. They grow until that is known.
__device__ ONCE bool has_liberty(Bits& from, const Bits& within, const Bits& empty) {
  for (;;) {
    const Bits near = around(from), wider = from | (near & within);
    if (any(near & empty)) return true;
    if (equal(wider, from)) return false;
    from = wider;
  }
}
__device__ int room(const Bits& empty, int place) { return count(around(one(place)) & empty); }

enum { UNDECIDED, CAPTURED, ESCAPED };

// A position of a ladder and the moves that were not tried.
struct Frame {
  Bits stones[2];  // the defender's, the attacker's
  Bits chain;      // the stones of the attacked chain that are known: all of them once the position is examined
  Bits first;      // these moves come first, in the order of their points
  i16 then;        // and this one last
  i16 ko;
};

// Plays a stone. False if that is suicide. Where the attacked chain is met, following it begins with all that is known of it.
__device__ ONCE bool play(Frame& frame, int side, int place) {
  Bits &mine = frame.stones[side], &theirs = frame.stones[1 - side];
  const Bits stone = one(place), beside = around(stone);
  const bool alone = !any(without(beside, theirs));
  mine = mine | stone;
  const Bits empty = without(on_board(), mine | theirs);
  Bits captured = none(), left = beside & theirs;
  while (any(left)) {
    const int met = lowest(left);
    Bits chain = side && has(frame.chain, met) ? frame.chain : one(met);
    if (!has_liberty(chain, theirs, empty)) captured = captured | chain;
    left = without(left, chain);
  }
  theirs = without(theirs, captured);
  frame.ko = alone && count(captured) == 1 ? lowest(captured) : NOWHERE;
  Bits chain = stone;
  return any(captured) || has_liberty(chain, mine, empty);
}

// Where the defender captures a chain in atari next to his own.
__device__ ONCE Bits rescues(const Frame& frame, const Bits& chain, const Bits& empty) {
  // Chains with a stone that has two liberties are not in atari: those are followed all at once.
  const Bits& theirs = frame.stones[1];
  Bits found = none(), left = without(around(chain) & theirs, connected(theirs & beside_two(empty), theirs));
  while (any(left)) {
    const Bits other = connected(one(lowest(left)), theirs), liberties = around(other) & empty;
    if (count(liberties) == 1) found = found | liberties;
    left = without(left, other);
  }
  return found;
}

// Whether the attacker captures a single stone of the defender with a move among his stones, and connecting there leaves
// the defender at most two liberties.
__device__ ONCE bool is_mouth(const Frame& frame, int place, const Bits& empty) {
  const Bits &mine = frame.stones[0], beside = around(one(place));
  if (any(without(beside, mine))) return false;
  int in_atari = 0, alone = 0;
  Bits joined = none();
  for (Bits left = beside; any(left);) {
    const int stone = lowest(left);
    const Bits chain = connected(one(stone), mine);
    left = without(left, one(stone));
    joined = joined | chain;
    if (count(around(chain) & empty) != 1) continue;
    in_atari++;
    alone += count(chain) == 1;
  }
  return in_atari == 1 && alone == 1 && count(around(joined) & empty) - 1 <= 2;
}

// Whether a position is decided, and if not, the moves to try.
__device__ ONCE int examine(Frame& frame, bool defends, bool begins) {
  const Bits empty = without(on_board(), frame.stones[0] | frame.stones[1]);
  const Bits chain = frame.chain = connected(frame.chain, frame.stones[0]), liberties = around(chain) & empty;
  const int number = count(liberties), low = lowest(liberties);
  if (defends) {
    if (number >= 2 || (frame.ko != NOWHERE && !begins) || room(empty, low) >= 3) return ESCAPED;
    frame.ko = NOWHERE;
    frame.first = rescues(frame, chain, empty);
    frame.then = has(frame.first, low) ? NOWHERE : low;
    return UNDECIDED;
  }
  if (number != 2) return number < 2 ? CAPTURED : ESCAPED;
  const int high = lowest(without(liberties, one(low)));
  const int close = has(around(one(low)), high);
  const int low_room = room(empty, low) - close, high_room = room(empty, high) - close;
  if (low_room + high_room + close == 0 && !any(rescues(frame, chain, empty)) && is_mouth(frame, low, empty) &&
      is_mouth(frame, high, empty))
    return CAPTURED;
  if (low_room >= 3 && high_room >= 3) return ESCAPED;
  // An attack that leaves a liberty with three empty neighbours is hopeless.
  const bool both = low_room < 3 && high_room < 3, low_first = both ? low_room >= high_room : high_room < 3;
  frame.first = one(low_first ? low : high);
  frame.then = !both ? NOWHERE : low_first ? high : low;
  return UNDECIDED;
}

// Whether the chain is captured, after an attack on it or with its owner to move.
__device__ bool falls(const Bits& defender, const Bits& attacker, int stone, int attack) {
  Frame frames[DEPTH];
  frames[0].stones[0] = defender;
  frames[0].stones[1] = attacker;
  frames[0].chain = one(stone);
  frames[0].ko = NOWHERE;
  if (attack != NOWHERE && !play(frames[0], 1, attack)) return false;
  int found = examine(frames[0], true, true), depth = 0;
  for (int moves = 1; found == UNDECIDED; moves++) {
    Frame& now = frames[depth];
    const int side = depth & 1;
    int move = lowest(now.first);
    if (move == NOWHERE) {
      move = now.then;
      now.then = NOWHERE;
    } else {
      now.first = without(now.first, one(move));
    }
    Frame next;
    next.stones[0] = now.stones[0];
    next.stones[1] = now.stones[1];
    next.chain = now.chain;
    const bool legal = move != now.ko && play(next, side, move);
    found = !legal ? (side ? ESCAPED : CAPTURED) : examine(next, side == 1, false);
    if (moves >= MOVES) return false;
    if (found == UNDECIDED && depth + 1 >= DEPTH) {
      if (!EXACT) return false;
      found = CAPTURED;
    }
    if (found == UNDECIDED) {
      frames[++depth] = next;
      continue;
    }
    // A decided position decides those before it, up to one where the side that it is bad for has another move.
    while (depth >= 0 && ((depth & 1) != (found == ESCAPED) || (frames[depth].then == NOWHERE && !any(frames[depth].first))))
      depth--;
    if (depth >= 0) found = UNDECIDED;
  }
  return found == CAPTURED;
}

extern "C" __global__ void __launch_bounds__(THREADS) go_ladders(
    const CHAIN* chains, const i16* ko, const int* turn, u8* marks) {
  constexpr int MOST = GAMES * 2 * POINTS;
  __shared__ Bits stones[GAMES][2], captured[GAMES], attacks[GAMES];
  __shared__ u32 tasks[MOST];
  __shared__ int added, taken;
  const int first = blockIdx.x * GAMES, games = min(GAMES, BATCH - first);
  for (int k = threadIdx.x; k < GAMES * WORDS; k += THREADS) {
    const int game = k / WORDS, word = k % WORDS;
    stones[game][0].word[word] = stones[game][1].word[word] = 0;
    captured[game].word[word] = attacks[game].word[word] = 0;
  }
  if (threadIdx.x == 0) added = taken = 0;
  __syncthreads();
  for (int k = threadIdx.x; k < games * POINTS; k += THREADS) {
    const int chain = chains[first * POINTS + k], place = place_of(k % POINTS);
    if (chain) atomicOr(&stones[k / POINTS][(chain - 1) & 1].word[place >> 5], 1u << (place & 31));
  }
  __syncthreads();

  // The ladders to read: the root of the chain, and the attack on it, if there is one.
  for (int k = threadIdx.x; k < games * POINTS; k += THREADS) {
    const int game = k / POINTS, point = k % POINTS, chain = chains[first * POINTS + k];
    if (chain == 0 || (chain - 1) >> 1 != point) continue;
    const Bits empty = without(on_board(), stones[game][0] | stones[game][1]);
    const Bits liberties = around(connected(one(place_of(point)), stones[game][(chain - 1) & 1])) & empty;
    const int number = count(liberties), low = lowest(liberties);
    if (number == 1 && room(empty, low) < 3) tasks[atomicAdd(&added, 1)] = k * 1024 + 1023;
    if (number != 2) continue;
    const int high = lowest(without(liberties, one(low))), close = has(around(one(low)), high);
    const int banned = ko[first + game] < 0 ? NOWHERE : place_of(ko[first + game]);
    if (low != banned && room(empty, high) - close < 3) tasks[atomicAdd(&added, 1)] = k * 1024 + low;
    if (high != banned && room(empty, low) - close < 3) tasks[atomicAdd(&added, 1)] = k * 1024 + high;
  }
  __syncthreads();

  for (;;) {
    const int task = atomicAdd(&taken, 1);
    if (task >= added) break;
    const int k = tasks[task] / 1024, game = k / POINTS, stone = place_of(k % POINTS);
    const int colour = has(stones[game][1], stone), attack = tasks[task] % 1024;
    if (!falls(stones[game][colour], stones[game][1 - colour], stone, attack == 1023 ? NOWHERE : attack)) continue;
    const Bits chain = connected(one(stone), stones[game][colour]);
#pragma unroll
    for (int word = 0; word < WORDS; word++)
      if (chain.word[word]) atomicOr(&captured[game].word[word], chain.word[word]);
    if (attack != 1023 && colour != turn[first + game])
      atomicOr(&attacks[game].word[attack >> 5], 1u << (attack & 31));
  }
  __syncthreads();

  for (int k = threadIdx.x; k < games * POINTS; k += THREADS) {
    const int game = k / POINTS, place = place_of(k % POINTS);
    marks[first * POINTS + k] = has(captured[game], place) | has(attacks[game], place) << 1;
  }
}
