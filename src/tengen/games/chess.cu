// One move in every game of a batch, the legal moves afterwards, and what a network sees. See chess_gpu.py for the
// arguments, chess_position.py for the state, and chess_moves.py for the same rules in plain JAX.
//
// A warp plays one game; each thread has two squares of the board. Sets of squares are 64-bit words. What does not
// depend on a square is computed by all threads alike.
//
// Defined by the caller: SIZE, TEAM (32), TEAMS (per block), BATCH, ACTIONS, MAX_MOVES, OLDER (length of the list of
// positions), DOUBLE_STEP and CASTLING (0 or 1).

typedef unsigned long long u64;

constexpr int SQUARES = SIZE * SIZE;
constexpr int EACH = (SQUARES + TEAM - 1) / TEAM;  // squares of a thread
constexpr int HISTORY = 8, REMEMBERED = 16, REVERSIBLE = 100;
constexpr int PIECE_PLANES = 13;
enum { EMPTY, PAWN, KNIGHT, BISHOP, ROOK, QUEEN, KING, THEIRS = 8 };
enum { RUNNING, CHECKMATE, STALEMATE, FIFTY, REPETITION, MATERIAL, LONGEST };
enum { PLAIN, IN_PASSING, CASTLES };
// Tables of sets, one for each square: four rays up, four down (straight ones before diagonal ones), then these.
enum { UP, DOWN = 4, KNIGHT_TO = 8, KING_TO, PAWN_TAKES, THEIR_PAWN_TAKES, FORWARD, TWO_FORWARD };

struct Game {
  u8 codes[64];
  u64 targets[64 + 8];  // of each square, then of the pawns before the last rank
};

struct Move {
  int start, end, kind, becomes, taken, taken_at, rook_start, rook_end;
  bool castles;
  u32 undo;
};

__device__ int flipped(int square) { return (SIZE - 1 - square / SIZE) * SIZE + square % SIZE; }
__device__ u64 bit(int square) { return 1ull << square; }
__device__ int castled_king(bool right) { return right ? 6 : 2; }
__device__ int castled_rook(bool right) { return right ? 5 : 3; }

__device__ u64 table(const u32* tables, int kind, int square) {
  const u32* words = tables + (kind * SQUARES + square) * 2;
  return words[0] | (u64)words[1] << 32;
}

// The part of a ray up to and including its first occupied square.
__device__ u64 slide(const u32* tables, int way, int square, u64 occupied) {
  const u64 ray = table(tables, way, square), met = occupied & ray;
  if (way < DOWN) return ray & (met ^ (met - 1));
  return met ? ray & ~(bit(63 - __clzll(met)) - 1) : ray;
}

// The squares for which a condition holds; each thread gives those of its squares.
__device__ u64 squares_of(const bool* mine) {
  u64 found = __ballot_sync(~0u, mine[0]);
  if (EACH > 1) found |= (u64)__ballot_sync(~0u, mine[EACH - 1]) << 32;
  return found;
}

__device__ u64 union_of(u64 mine) {
  for (int distance = 16; distance; distance >>= 1) mine |= __shfl_xor_sync(~0u, mine, distance);
  return mine;
}

struct Sides {
  u64 occupied, mine, theirs, straight, diagonal, knights, pawns;  // the last four are theirs
  int king;
};

__device__ Sides sides_of(const int* code) {
  bool is[7][EACH];
  for (int k = 0; k < EACH; k++) {
    const int kind = code[k] & 7;
    const bool theirs = code[k] >= THEIRS;
    is[0][k] = code[k] > 0 && !theirs;
    is[1][k] = theirs;
    is[2][k] = theirs && (kind == ROOK || kind == QUEEN);
    is[3][k] = theirs && (kind == BISHOP || kind == QUEEN);
    is[4][k] = theirs && kind == KNIGHT;
    is[5][k] = theirs && kind == PAWN;
    is[6][k] = code[k] == KING;
  }
  Sides found;
  found.mine = squares_of(is[0]);
  found.theirs = squares_of(is[1]);
  found.straight = squares_of(is[2]);
  found.diagonal = squares_of(is[3]);
  found.knights = squares_of(is[4]);
  found.pawns = squares_of(is[5]);
  const u64 king = squares_of(is[6]);
  found.occupied = found.mine | found.theirs;
  found.king = king ? 63 - __clzll(king) : 0;
  return found;
}

__device__ u64 attackers_on(const Sides& sides, int way) { return way & 2 ? sides.diagonal : sides.straight; }

// Whether their sliders attack a square when these squares are occupied.
__device__ bool slider_attacks(const u32* tables, const Sides& sides, int square, u64 occupied) {
  u64 found = 0;
#pragma unroll
  for (int way = 0; way < 8; way++) found |= slide(tables, way, square, occupied) & attackers_on(sides, way);
  return found != 0;
}

__device__ u64 span(int a, int b) { return (bit(a > b ? a : b) << 1) - bit(a < b ? a : b); }

// The rooks to which our king may castle.
__device__ u64 castling_targets(const u32* tables, const Sides& sides, const int* rights, u64 danger) {
  u64 found = 0;
  for (int side = 0; side < 2; side++) {
    const int rook = rights[side], king_to = castled_king(side), rook_to = castled_rook(side);
    if (rook < 0) continue;
    const u64 way = span(sides.king, king_to), others = sides.occupied & ~bit(sides.king) & ~bit(rook);
    if (((way | span(rook, rook_to)) & others) || (way & danger)) continue;
    // Chess960: the rook may have shielded the king's new square.
    if (!slider_attacks(tables, sides, king_to, others | bit(rook_to))) found |= bit(rook);
  }
  return found;
}

struct Found {
  bool any, check, passing;
};

// Puts where each of our pieces may go into game.targets.
__device__ Found find_moves(Game& game, const u32* tables, const int* code, const int* rights, int passing,
                            int thread) {
  const Sides sides = sides_of(code);
  u64 attacks[EACH], danger = 0;
  for (int k = 0; k < EACH; k++) {
    const int square = thread + k * TEAM, kind = code[k] & 7;
    const bool theirs = code[k] >= THEIRS;
    attacks[k] = 0;
    if (square >= SQUARES || !kind) continue;
    // For their pieces, our king hides nothing behind it.
    const u64 seen = theirs ? sides.occupied & ~bit(sides.king) : sides.occupied;
    const int first = kind == BISHOP ? 2 : 0, last = kind == ROOK ? 2 : 4;
    if (kind == BISHOP || kind == ROOK || kind == QUEEN)
      for (int way = first; way < last; way++)
        attacks[k] |= slide(tables, UP + way, square, seen) | slide(tables, DOWN + way, square, seen);
    else
      attacks[k] = table(tables, kind == KNIGHT ? KNIGHT_TO : kind == KING ? KING_TO
                                 : theirs ? THEIR_PAWN_TAKES : PAWN_TAKES, square);
    if (theirs) danger |= attacks[k];
  }
  danger = union_of(danger);

  // Checks, and pieces that shield the king.
  u64 checkers = (table(tables, KNIGHT_TO, sides.king) & sides.knights) |
                 (table(tables, PAWN_TAKES, sides.king) & sides.pawns);
  const u64 leapers = checkers;
  u64 answers = checkers, first[8], shields = 0, second[8];
#pragma unroll
  for (int way = 0; way < 8; way++) {
    first[way] = slide(tables, way, sides.king, sides.occupied);
    const u64 slider = first[way] & attackers_on(sides, way);
    checkers |= slider;
    if (slider) answers |= first[way];
    shields |= first[way] & sides.mine;
  }
  if (!checkers) answers = ~0ull;
  if (__popcll(checkers) > 1) answers = 0;
#pragma unroll
  for (int way = 0; way < 8; way++) second[way] = slide(tables, way, sides.king, sides.occupied & ~shields);

  // A pawn taken in passing leaves the board from another square than the taker's target.
  u64 takers = 0;
  const int target = (SIZE - 3) * SIZE + passing;
  if (DOUBLE_STEP && passing >= 0) {
    const u64 taken = bit(target - SIZE);
    for (int side = -1; side <= 1; side += 2) {
      const int file = passing + side, from = target - SIZE + side;
      if (file < 0 || file >= SIZE || game.codes[from] != PAWN) continue;
      const u64 after = (sides.occupied & ~bit(from) & ~taken) | bit(target);
      if (!(leapers & ~taken) && !slider_attacks(tables, sides, sides.king, after)) takers |= bit(from);
    }
  }

  bool any = false;
  for (int k = 0; k < EACH; k++) {
    const int square = thread + k * TEAM;
    if (square >= SQUARES) continue;
    u64 found = 0;
    if (code[k] > 0 && code[k] < THEIRS) {
      u64 allowed = answers;
#pragma unroll
      for (int way = 0; way < 8; way++)
        if ((first[way] & sides.mine & bit(square)) && (second[way] & attackers_on(sides, way)))
          allowed &= second[way];
      if (code[k] == PAWN) {
        const u64 one = table(tables, FORWARD, square) & ~sides.occupied;
        found = (attacks[k] & sides.theirs) | one;
        if (one) found |= table(tables, TWO_FORWARD, square) & ~sides.occupied;
        found &= allowed;
        if (takers >> square & 1) found |= bit(target);
      } else if (code[k] == KING) {
        found = attacks[k] & ~sides.mine & ~danger;
        if (CASTLING) found |= castling_targets(tables, sides, rights, danger);
      } else {
        found = attacks[k] & ~sides.mine & allowed;
      }
    }
    game.targets[square] = found;
    const int row = square - (SQUARES - 2 * SIZE);
    if (row >= 0 && row < SIZE) game.targets[SQUARES + row] = code[k] == PAWN ? found : 0;
    any |= found != 0;
  }
  team_sync();
  return {__any_sync(~0u, any), checkers != 0, takers != 0};
}

__device__ Move decode(const Game& game, u32 packed) {
  Move move;
  const int to = packed >> 6 & 63, promotion = packed >> 12;
  move.start = packed & 63;
  move.kind = game.codes[move.start];
  const int there = game.codes[to];
  move.castles = CASTLING && move.kind == KING && there == ROOK;
  const bool right = to > move.start;
  const bool passes = move.kind == PAWN && there == 0 && to % SIZE != move.start % SIZE;
  move.end = move.castles ? castled_king(right) : to;
  move.rook_start = to;
  move.rook_end = castled_rook(right);
  move.becomes = move.kind;
  if (move.kind == PAWN && to >= SQUARES - SIZE)
    move.becomes = promotion == 0 ? KNIGHT : promotion == 1 ? QUEEN : promotion == 2 ? ROOK : BISHOP;
  move.taken = move.castles ? 0 : passes ? PAWN : there & 7;
  move.taken_at = passes ? to - SIZE : to;
  const u32 how = move.castles ? CASTLES : passes ? IN_PASSING : PLAIN;
  move.undo = move.start | to << 6 | move.taken << 12 | how << 15 | (u32)move.kind << 17;
  return move;
}

// The code of a square before a move; moves of odd age are theirs.
__device__ int taken_back(int code, int square, u32 undo, int age) {
  const int start = undo & 63, end = undo >> 6 & 63, taken = undo >> 12 & 7, how = undo >> 15 & 3, kind = undo >> 17 & 7;
  const int mine = age & 1 ? THEIRS : 0;
  if (age & 1) square = flipped(square);
  const bool castles = how == CASTLES, right = end > start;
  if (square == start) return kind + mine;
  if (square == (how == IN_PASSING ? end - SIZE : end))
    return castles ? ROOK + mine : taken ? taken + THEIRS - mine : 0;
  if (square == (castles ? castled_king(right) : end) || square == (castles ? castled_rook(right) : end)) return 0;
  return code;
}

// The part of the hash for castling rights, a pawn that can be taken in passing, and the turn.
__device__ u32 extra_of(const u32* other_keys, const int* rights, int passing, bool black, int word) {
  u32 total = black ? other_keys[4 * 2 + word] : 0;
  for (int side = 0; side < 4; side++)
    if (rights[black ? side ^ 2 : side] >= 0) total += other_keys[side * 2 + word];
  if (passing >= 0) total += other_keys[(5 + passing) * 2 + word];
  return total;
}

__device__ u32 key_of(const u32* piece_keys, int colour, int kind, int square, bool black, int word) {
  if (kind == 0) return 0;
  return piece_keys[((colour * 7 + kind) * SQUARES + (black ? flipped(square) : square)) * 2 + word];
}

__device__ u32 delta_of(const u32* keys, const Move& move, bool black, int word) {
  const int me = black, rook = move.castles ? ROOK : 0;
  return key_of(keys, me, move.becomes, move.end, black, word) + key_of(keys, me, rook, move.rook_end, black, word) -
         key_of(keys, me, move.kind, move.start, black, word) - key_of(keys, me, rook, move.rook_start, black, word) -
         key_of(keys, 1 - me, move.taken, move.taken_at, black, word);
}

// Whether neither side can ever checkmate.
__device__ bool too_little(const int* code, int thread) {
  bool other[EACH], knight[EACH], dark[EACH], light[EACH];
  for (int k = 0; k < EACH; k++) {
    const int square = thread + k * TEAM, kind = code[k] & 7;
    other[k] = kind == PAWN || kind == ROOK || kind == QUEEN;
    knight[k] = kind == KNIGHT;
    const bool is_dark = (square % SIZE + square / SIZE) % 2 == 0;
    dark[k] = kind == BISHOP && is_dark;
    light[k] = kind == BISHOP && !is_dark;
  }
  const u64 others = squares_of(other), knights = squares_of(knight), darks = squares_of(dark), lights = squares_of(light);
  if (others) return false;
  return __popcll(knights | darks | lights) <= 1 || (!knights && (!darks || !lights));
}

extern "C" __global__ void __launch_bounds__(TEAM * TEAMS) chess_move_and_look(
    const u32* __restrict__ boards, const i8* __restrict__ castling, const i8* __restrict__ passing,
    const i8* __restrict__ ended, const u8* __restrict__ clocks, const u8* __restrict__ repeated,
    const i16* __restrict__ plies, const i16* __restrict__ moves, const u32* __restrict__ undo,
    const u32* __restrict__ recent, const u32* __restrict__ history, const int* __restrict__ actions,
    const u8* __restrict__ stay, const u32* __restrict__ piece_keys, const u32* __restrict__ other_keys,
    const u32* __restrict__ tables, const u32* __restrict__ numbered, u32* __restrict__ boards_out,
    i8* __restrict__ castling_out, i8* __restrict__ passing_out, i8* __restrict__ ended_out,
    u8* __restrict__ clocks_out, u8* __restrict__ repeated_out, i16* __restrict__ plies_out,
    i16* __restrict__ moves_out, u32* __restrict__ undo_out, u32* __restrict__ recent_out,
    u8* __restrict__ legal_out, u32* __restrict__ planes_out) {
  __shared__ Game all[TEAMS];
  const int team = threadIdx.x / TEAM, thread = threadIdx.x % TEAM, number = blockIdx.x * TEAMS + team;
  if (number >= BATCH) return;
  Game& game = all[team];
  const bool holds = stay[number] || ended[number] != RUNNING;
  const bool black = plies[number] & 1;
  int code[EACH], rights[4], before[4];
  for (int side = 0; side < 4; side++) rights[side] = before[side] = castling[number * 4 + side];
  for (int k = 0; k < EACH; k++) {
    const int square = thread + k * TEAM;
    code[k] = square < SQUARES ? boards[number * SIZE + square / SIZE] >> 4 * (square % SIZE) & 15 : 0;
    if (square < SQUARES) game.codes[square] = code[k];
  }
  team_sync();

  // The move, and the board from the other side.
  int passes = passing[number], clock = clocks[number], length = moves[number];
  const int passed = passes;
  const Move move = decode(game, numbered[actions[number] < ACTIONS && actions[number] >= 0 ? actions[number] : 0]);
  if (!holds) {
    for (int k = 0; k < EACH; k++) {
      const int square = thread + k * TEAM, old = flipped(square);
      if (square >= SQUARES) continue;
      int there = game.codes[old];
      if (old == move.start || old == move.taken_at || (move.castles && old == move.rook_start)) there = 0;
      if (move.castles && old == move.rook_end) there = ROOK;
      if (old == move.end) there = move.becomes;
      code[k] = there ? there ^ THEIRS : 0;
    }
    for (int side = 0; side < 2; side++) {
      const int mine = before[side], theirs = before[2 + side];
      rights[2 + side] = move.kind == KING || mine == move.start ? -1 : mine;
      rights[side] = theirs == move.taken_at - (SQUARES - SIZE) ? -1 : theirs;
    }
    const bool two = DOUBLE_STEP && move.kind == PAWN && move.end - move.start == 2 * SIZE;
    passes = two ? move.start % SIZE : -1;
    clock = move.kind == PAWN || move.taken ? 0 : (clock < 254 ? clock : 254) + 1;
    length++;
  }
  team_sync();
  if (!holds)
    for (int k = 0; k < EACH; k++)
      if (thread + k * TEAM < SQUARES) game.codes[thread + k * TEAM] = code[k];
  team_sync();
  const Found found = find_moves(game, tables, code, rights, passes, thread);

  // Repetitions, and the end of the game.
  int end = ended[number], repeats = repeated[number];
  u32 now[2] = {recent[number * REMEMBERED * 2], recent[number * REMEMBERED * 2 + 1]};
  if (!holds) {
    if (!found.passing) passes = -1;
    for (int word = 0; word < 2; word++)
      now[word] += delta_of(piece_keys, move, black, word) - extra_of(other_keys, before, passed, black, word) +
                   extra_of(other_keys, rights, passes, !black, word);
    const u32* last = recent + number * REMEMBERED * 2;
    const bool newer = thread < REMEMBERED - 1 && thread + 1 <= clock && last[thread * 2] == now[0] &&
                       last[thread * 2 + 1] == now[1];
    int times = __popcll(__ballot_sync(~0u, newer));
    for (int first = 0; first < OLDER; first += TEAM) {
      const int slot = first + thread, age = ((length - slot) % REVERSIBLE + REVERSIBLE) % REVERSIBLE;
      const u32* then = history + (number * OLDER + slot) * 2;
      const bool older = slot < OLDER && age >= REMEMBERED && age <= clock && then[0] == now[0] && then[1] == now[1];
      times += __popcll(__ballot_sync(~0u, older));
    }
    repeats = (repeats << 1 & 255) | (times > 0);
    end = length >= MAX_MOVES ? LONGEST : RUNNING;
    if (too_little(code, thread)) end = MATERIAL;
    if (times >= 2) end = REPETITION;
    if (clock >= REVERSIBLE) end = FIFTY;
    if (!found.any) end = found.check ? CHECKMATE : STALEMATE;
  }

  // The new state.
  if (thread < SIZE) {
    u32 rank = 0;
    for (int file = 0; file < SIZE; file++) rank |= (u32)game.codes[thread * SIZE + file] << 4 * file;
    boards_out[number * SIZE + thread] = rank;
  }
  if (thread == 0) {
    for (int side = 0; side < 4; side++) castling_out[number * 4 + side] = rights[side];
    passing_out[number] = passes;
    ended_out[number] = end;
    clocks_out[number] = clock;
    repeated_out[number] = repeats;
    plies_out[number] = plies[number] + !holds;
    moves_out[number] = length;
  }
  u32 taken[HISTORY - 1];
#pragma unroll
  for (int age = 0; age < HISTORY - 1; age++) {
    const u32* words = undo + number * (HISTORY - 1);
    taken[age] = holds ? words[age] : age == 0 ? move.undo : words[age - 1];
    if (thread == age) undo_out[number * (HISTORY - 1) + age] = taken[age];
  }
  {
    const int slot = thread / 2, word = thread % 2;  // 16 hashes of two words
    const u32* words = recent + number * REMEMBERED * 2;
    recent_out[number * REMEMBERED * 2 + thread] =
        holds ? words[thread] : slot == 0 ? now[word] : words[thread - 2];
  }

  // What is legal, and what a network sees.
  for (int action = thread; action < ACTIONS; action += TEAM) {
    const u32 packed = numbered[action];
    const int row = packed >> 12 ? SQUARES + (packed & 63) % SIZE : packed & 63;
    legal_out[number * ACTIONS + action] = end == RUNNING && (game.targets[row] >> (packed >> 6 & 63) & 1);
  }
  const bool black_now = black != !holds;
  for (int k = 0; k < EACH; k++) {
    const int square = thread + k * TEAM;
    if (square >= SQUARES) continue;
    u64 planes[2] = {1, 0};
    int here = code[k];
#pragma unroll
    for (int age = 0; age < HISTORY; age++) {
      if (age > 0) {
        if (taken[age - 1] == 0) break;
        here = taken_back(here, square, taken[age - 1], age);
      }
      const int first = 1 + PIECE_PLANES * age;
      const int plane = first + (here >= THEIRS ? here - THEIRS + 5 : here - 1);
      if (here) planes[plane / 64] |= bit(plane % 64);
      const int repetition = first + PIECE_PLANES - 1;
      if (repeats >> age & 1) planes[repetition / 64] |= bit(repetition % 64);
    }
    constexpr int FLAGS = 1 + PIECE_PLANES * HISTORY - 64;
    for (int side = 0; side < 4; side++)
      if (rights[side] >= 0) planes[1] |= bit(FLAGS + side);
    if (black_now) planes[1] |= bit(FLAGS + 4);
    u32* words = planes_out + (number * SQUARES + square) * 4;
    words[0] = planes[0];
    words[1] = planes[0] >> 32;
    words[2] = planes[1];
    words[3] = planes[1] >> 32;
  }
}
