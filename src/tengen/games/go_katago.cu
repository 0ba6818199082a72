// The ladders and areas of a batch of boards, as go_ladders.py and go_katago.py find them. See go_gpu.py for the arguments.
//
// A thread reads a ladder of the games of its block, or finds the area of a colour, alone and on boards of bits. A ladder may
// be twenty times as long as most, and the program takes as long as the longest. So the ladders are dealt out to the warps
// in turn: long ones then soon have a warp for themselves, and do not wait for other threads.
//
// Defined by the caller: SIZE, BATCH, GAMES (per block), THREADS, BLOCKS (at least, on a multiprocessor at once), LADDERS and
// AREAS (0 or 1: whether they are wanted), MOVES, DEPTH and EXACT (the limits of a ladder), SUICIDE (0 or 1), CHAIN (the type
// of a chain's number in memory). A point of `chains` is 0 if it is empty, otherwise 1 + 2 * root + colour, where root is a
// stone of the chain.

constexpr int POINTS = SIZE * SIZE;
constexpr int PACKED = (POINTS + 31) / 32;  // words of a result

// Ladders

enum { UNDECIDED, CAPTURED, ESCAPED };

// A position of a ladder and the moves that were not tried.
struct Branch {
  Bits stones[2];  // the defender's, the attacker's
  Bits chain;      // that is attacked
  Bits first;      // these moves come first, in the order of their points
  i16 then;        // and this one last
  i16 ko;
  int depth;       // the attacker is to move if it is odd
};
struct Ladder : Branch {
  Bits near;  // the points around the chain
};

__device__ Bits empty_of(const Ladder& now) { return without(on_board(), now.stones[0] | now.stones[1]); }
__device__ int room(const Bits& empty, int place) { return count(next_to(place) & empty); }

// Where the defender captures a chain in atari next to his own.
__device__ ONCE Bits rescues(const Ladder& now, const Bits& empty) {
  // Chains with a stone that has two liberties are not in atari.
  const Bits& theirs = now.stones[1];
  Bits found = none(), left = out_of_reach(now.near & theirs, theirs & beside_two(empty), theirs);
  while (any(left)) {
    const Bits other = connected(one(lowest(left)), theirs), liberties = around(other) & empty;
    if (count(liberties) == 1) found = found | liberties;
    left = without(left, other);
  }
  return found;
}

// Whether the attacker captures a single stone of the defender with a move among his stones, and connecting there leaves
// the defender at most two liberties.
__device__ ONCE bool is_mouth(const Ladder& now, int place, const Bits& empty) {
  const Bits &mine = now.stones[0], beside = next_to(place);
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

// Puts a stone of a side next to these points. Takes the captured stones away, all but those of the attacked chain, which
// has another liberty. Returns them.
__device__ Bits put(Ladder& now, int side, int place, const Bits& beside, Bits& empty) {
  Bits &mine = now.stones[side], &theirs = now.stones[1 - side];
  const Bits stone = one(place);
  mine = mine | stone;
  empty = without(empty, stone);
  now.ko = NOWHERE;
  Bits captured = beside & theirs;
  if (side) captured = without(captured, now.chain);
  if (!any(captured)) return captured;
  captured = out_of_reach(captured, theirs & around(empty), theirs);
  if (!any(captured)) return captured;
  captured = connected(captured, theirs);
  if (count(captured) == 1 && !any(without(beside, theirs))) now.ko = lowest(captured);
  theirs = without(theirs, captured);
  empty = empty | captured;
  return captured;
}

// The defender is to move. Is the position decided? If not, finds the moves to try. The chain has one liberty.
__device__ int defend(Ladder& now, const Bits& empty) {
  const int liberty = lowest(now.near & empty);
  if (now.ko != NOWHERE || room(empty, liberty) >= 3) return ESCAPED;
  now.first = rescues(now, empty);
  now.then = has(now.first, liberty) ? NOWHERE : liberty;
  return UNDECIDED;
}

// The attacker plays on a liberty of a chain with two.
__device__ int after_attack(Ladder& now, int place, bool begins) {
  Bits empty = empty_of(now);
  const Bits beside = next_to(place), captured = put(now, 1, place, beside, empty);
  if (!any(captured | (beside & empty))) {
    const Bits& mine = now.stones[1];
    if (any(out_of_reach(one(place), mine & around(empty), mine))) return ESCAPED;  // suicide
  }
  if (begins) now.ko = NOWHERE;
  return defend(now, empty);
}

// The defender plays. Suicide leaves the chain without a liberty.
__device__ int after_defence(Ladder& now, int place) {
  Bits empty = empty_of(now);
  const Bits beside = next_to(place);
  put(now, 0, place, beside, empty);
  if (any(beside & now.chain)) {
    now.chain = now.chain | one(place);
    now.near = now.near | beside;
    if (any(without(beside & now.stones[0], now.chain))) {
      now.chain = connected(now.chain, now.stones[0]);
      now.near = around(now.chain);
    }
  }
  const Bits liberties = now.near & empty;
  const int number = count(liberties);
  if (number != 2) return number < 2 ? CAPTURED : ESCAPED;
  const int low = lowest(liberties), high = lowest(without(liberties, one(low)));
  const Bits by_low = next_to(low);
  const int close = has(by_low, high);
  const int low_room = count(by_low & empty) - close, high_room = room(empty, high) - close;
  if (low_room + high_room + close == 0 && !any(rescues(now, empty)) && is_mouth(now, low, empty) &&
      is_mouth(now, high, empty))
    return CAPTURED;
  if (low_room >= 3 && high_room >= 3) return ESCAPED;
  // An attack that leaves a liberty with three empty neighbours is hopeless.
  const bool both = low_room < 3 && high_room < 3, low_first = both ? low_room >= high_room : high_room < 3;
  now.first = one(low_first ? low : high);
  now.then = !both ? NOWHERE : low_first ? high : low;
  return UNDECIDED;
}

// Whether the chain is captured, after an attack on it or with its owner to move.
__device__ bool falls(const Bits& defender, const Bits& attacker, int stone, int attack) {
  Branch waiting[DEPTH];  // positions with a move that was not tried
  int others = 0;
  Ladder now;
  now.stones[0] = defender;
  now.stones[1] = attacker;
  now.chain = connected(one(stone), defender);
  now.near = around(now.chain);
  now.ko = NOWHERE;
  now.depth = 0;
  int found = attack == NOWHERE ? defend(now, empty_of(now)) : after_attack(now, attack, true);
  for (int moves = 1; found == UNDECIDED; moves++) {
    int move = lowest(now.first);
    if (move == NOWHERE) {
      move = now.then;
      now.then = NOWHERE;
    } else {
      now.first = without(now.first, one(move));
    }
    if (now.then != NOWHERE || any(now.first)) waiting[others++] = now;
    const int attacks = now.depth++ & 1;
    if (move == now.ko) found = attacks ? ESCAPED : CAPTURED;
    else found = attacks ? after_attack(now, move, false) : after_defence(now, move);
    if (moves >= MOVES) return false;
    if (found == UNDECIDED && now.depth >= DEPTH) {
      if (!EXACT) return false;
      found = CAPTURED;
    }
    if (found == UNDECIDED) continue;
    // A decided position decides those before it, up to one where the side that it is bad for has another move.
    while (others > 0 && (waiting[others - 1].depth & 1) != (found == ESCAPED)) others--;
    if (others == 0) break;
    (Branch&)now = waiting[--others];
    now.near = around(now.chain);
    found = UNDECIDED;
  }
  return found == CAPTURED;
}

// Areas

struct Area {
  Bits safe;  // pass-alive chains with what they surround
  Bits held;  // stones, and empty regions that only this colour touches
};

// The area of one colour, by Benson's algorithm.
__device__ Area area_of(const Bits own, const Bits other) {
  const Bits outside = without(on_board(), own), touching = around(own);
  Bits alive = own;
  for (;;) {
    Bits once = none(), twice = none(), surrounded = none();  // chains with a vital region, with two; safe regions
    Bits held = own;
    for (Bits left = outside; any(left);) {
      const Bits region = connected(one(lowest(left)), outside), border = around(region) & own;
      left = without(left, region);
      if (!any(border)) continue;
      const bool pure = !any(region & other);
      if (pure) held = held | region;
      if (any(without(border, alive))) continue;
      if (pure || count(without(region, touching)) <= 1) surrounded = surrounded | region;
      // Vital regions touch the chain with all of these points, so also with the first.
      const Bits empty = without(region, other), needed = SUICIDE ? region : empty;
      if (any(without(needed, touching))) continue;
      for (Bits beside = next_to(lowest(empty)) & own; any(beside);) {
        const Bits chain = connected(one(lowest(beside)), own);
        beside = without(beside, chain);
        if (any(without(needed, around(chain)))) continue;
        twice = twice | (once & chain);
        once = once | chain;
      }
    }
    const bool stable = equal(alive & twice, alive);
    if (stable || !any(alive & twice)) return {stable ? alive | surrounded : none(), held};
    alive = alive & twice;
  }
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) go_katago(
    const CHAIN* chains, const i16* ko, const int* turn, u32* packed) {
  constexpr int MOST = GAMES * POINTS, UNATTACKED = 1023;
  __shared__ Bits stones[GAMES][2], found[GAMES][4];
  __shared__ Area areas[GAMES][2];
  __shared__ u32 tasks[LADDERS ? 2 * MOST : 1];
  __shared__ u16 roots[LADDERS ? MOST : 1];
  __shared__ int chains_here, added;
  const int first = blockIdx.x * GAMES, games = min(GAMES, BATCH - first);
  const int reader = threadIdx.x % 32 * (THREADS / 32) + threadIdx.x / 32;  // neighbours are in different warps
  for (int k = threadIdx.x; k < GAMES * WORDS; k += THREADS) {
    const int game = k / WORDS, word = k % WORDS;
    stones[game][0].word[word] = stones[game][1].word[word] = 0;
    for (int row = 0; row < 4; row++) found[game][row].word[word] = 0;
  }
  if (threadIdx.x == 0) chains_here = added = 0;
  __syncthreads();
  for (int k = threadIdx.x; k < games * POINTS; k += THREADS) {
    const int chain = chains[first * POINTS + k], point = k % POINTS, place = place_of(point);
    if (chain == 0) continue;
    atomicOr(&stones[k / POINTS][(chain - 1) & 1].word[place >> 5], 1u << (place & 31));
    if (LADDERS && (chain - 1) >> 1 == point) roots[atomicAdd(&chains_here, 1)] = k;
  }
  __syncthreads();

  // The ladders to read: a stone of the chain, and the attack on it, if there is one.
  for (int number = threadIdx.x; number < chains_here; number += THREADS) {
    const int k = roots[number], game = k / POINTS, stone = place_of(k % POINTS);
    const Bits empty = without(on_board(), stones[game][0] | stones[game][1]);
    const Bits& own = stones[game][has(stones[game][1], stone)];
    Bits chain = one(stone), near = next_to(stone), liberties = near & empty;
    while (count(liberties) <= 2) {
      const Bits wider = chain | (near & own);
      if (equal(wider, chain)) break;
      chain = wider;
      near = around(chain);
      liberties = near & empty;
    }
    const int total = count(liberties), low = lowest(liberties);
    if (total == 1 && room(empty, low) < 3) tasks[atomicAdd(&added, 1)] = k * 1024 + UNATTACKED;
    if (total != 2) continue;
    const int high = lowest(without(liberties, one(low))), close = has(next_to(low), high);
    const int banned = ko[first + game] < 0 ? NOWHERE : place_of(ko[first + game]);
    if (low != banned && room(empty, high) - close < 3) tasks[atomicAdd(&added, 1)] = k * 1024 + low;
    if (high != banned && room(empty, low) - close < 3) tasks[atomicAdd(&added, 1)] = k * 1024 + high;
  }
  __syncthreads();

  if (AREAS)
    for (int k = reader; k < 2 * games; k += THREADS) {
      const int game = k / 2, colour = k % 2;
      areas[game][colour] = area_of(stones[game][colour], stones[game][1 - colour]);
    }
  if (LADDERS)
    for (int task = reader; task < added; task += THREADS) {
      const int k = tasks[task] / 1024, attack = tasks[task] % 1024, game = k / POINTS, stone = place_of(k % POINTS);
      const int colour = has(stones[game][1], stone);
      const Bits &own = stones[game][colour], &other = stones[game][1 - colour];
      if (!falls(own, other, stone, attack == UNATTACKED ? NOWHERE : attack)) continue;
      const Bits chain = connected(one(stone), own);
#pragma unroll
      for (int word = 0; word < WORDS; word++)
        if (chain.word[word]) atomicOr(&found[game][0].word[word], chain.word[word]);
      if (attack != UNATTACKED && colour != turn[first + game])
        atomicOr(&found[game][1].word[attack >> 5], 1u << (attack & 31));
    }
  __syncthreads();

  if (AREAS && threadIdx.x < games) {
    const int game = threadIdx.x;
    const Area &black = areas[game][0], &white = areas[game][1];
    found[game][3] = white.safe | without(white.held, black.safe);
    found[game][2] = without(black.safe | black.held, found[game][3]);
  }
  __syncthreads();
  for (int k = threadIdx.x; k < games * 4 * PACKED; k += THREADS) {
    const int start = k % PACKED * 32;
    const Bits& bits = found[k / PACKED / 4][k / PACKED % 4];
    u32 word = 0;
    for (int point = start; point < min(start + 32, POINTS); point++) {
      const int place = place_of(point);
      word |= (bits.word[place >> 5] >> (place & 31) & 1) << (point - start);
    }
    packed[first * 4 * PACKED + k] = word;
  }
}
