// One move in every game of a batch, and what the player to move sees afterwards. See go_gpu.py for the arguments.
//
// A team of TEAM threads plays one game on a board in shared memory, which has a border of OUTSIDE points so that no
// neighbour needs a bounds check. A point holds its chain's number: 0 if it is empty, otherwise 1 + 2 * root + colour.
//
// Defined by the caller: SIZE, TEAM, TEAMS (per block), BATCH, MAX_MOVES, KEPT and OLDER (lengths of the two lists of
// positions), SUICIDE, SUPERKO, SITUATIONAL (0 or 1), CHAIN (the type of a chain's number in memory).

constexpr int POINTS = SIZE * SIZE;
constexpr int WIDE = SIZE + 2;
constexpr int EACH = (POINTS + TEAM - 1) / TEAM;  // points of a thread
constexpr int OUTSIDE = 0xFFFF;
constexpr int RECENT = 5;  // newest moves that a state keeps

// The bits of a point. The first twelve are the planes of the observation, in their order.
enum { ON = 1, MINE = 2, THEIRS = 4, ONE = 8, TWO = 16, THREE = 32, BANNED = 64, AGO = 128, LEGAL = 1 << 12 };

struct Board {
  u16 chain[WIDE * WIDE];
  u32 liberties[POINTS];  // by root
  u32 sums[SUPERKO ? 2 : 1][SUPERKO ? POINTS : 1];  // by root: the chain's part of the hash
  u8 reached[WIDE * WIDE];  // in scoring: bit 0 if Black reaches the point, bit 1 if White does
  u32 change[2];
  int alive[4];
  int captures, captured_at, joined_alive, grew, area;
};

__device__ bool is_stone(int chain) { return chain != 0 && chain != OUTSIDE; }
__device__ bool has_colour(int chain, int colour) { return is_stone(chain) && ((chain - 1) & 1) == colour; }
__device__ int root_of(int chain) { return (chain - 1) >> 1; }
__device__ int place_of(int point) { return (point / SIZE + 1) * WIDE + point % SIZE + 1; }

// Neighbours in the order up, down, left, right.
__device__ int step_to(int side) { return side == 0 ? -WIDE : side == 1 ? WIDE : side == 2 ? -1 : 1; }

// The first direction that shows a chain counts it, so that a chain on several sides counts once.
__device__ bool is_first(const int* near, int side) {
#pragma unroll
  for (int before = 0; before < side; before++)
    if (near[before] == near[side]) return false;
  return true;
}

struct Move {
  int action;  // a point, or POINTS if the board stays as it is
  int player, next_player;
  bool rests;  // nothing changes
  bool ended;  // nothing is legal afterwards
};

// Plays the stone on the shared board: captures, merges, suicide. Leaves captures, captured_at and change in the board.
__device__ void play_stone(Board& board, const Move& move, const u32* keys, int thread) {
  const int place = place_of(move.action), number = 1 + 2 * move.action + move.player;
  int near[4];
  bool theirs[4], own[4];
#pragma unroll
  for (int side = 0; side < 4; side++) {
    near[side] = board.chain[place + step_to(side)];
    theirs[side] = has_colour(near[side], 1 - move.player);
    own[side] = has_colour(near[side], move.player);
  }
#pragma unroll
  for (int k = 0; k < EACH; k++) {  // which of the neighbouring chains have a liberty other than the new stone?
    const int point = thread + k * TEAM;
    if (point >= POINTS) continue;
    const int here = place_of(point), chain = board.chain[here];
    bool matters = false;
#pragma unroll
    for (int side = 0; side < 4; side++) matters |= is_stone(chain) && chain == near[side];
    if (!matters && point != move.action) continue;
    bool free = false;
#pragma unroll
    for (int side = 0; side < 4; side++) {
      const int beside = here + step_to(side);
      free |= board.chain[beside] == 0 && beside != place;
    }
    if (!free) continue;
    if (point == move.action) board.joined_alive = 1;
#pragma unroll
    for (int side = 0; side < 4; side++)
      if (is_stone(chain) && chain == near[side]) {
        board.alive[side] = 1;
        if (own[side]) board.joined_alive = 1;
      }
  }
  team_sync();
  u32 change[2] = {0, 0};
#pragma unroll
  for (int k = 0; k < EACH; k++) {
    const int point = thread + k * TEAM;
    if (point >= POINTS) continue;
    const int here = place_of(point), chain = board.chain[here];
    bool captured = false, joined = point == move.action;
#pragma unroll
    for (int side = 0; side < 4; side++)
      if (is_stone(chain) && chain == near[side]) {
        captured |= theirs[side] && !board.alive[side];
        joined |= own[side];
      }
    if (joined) board.chain[here] = number;
    if (captured) {
      board.chain[here] = 0;
      atomicAdd(&board.captures, 1);
      atomicMax(&board.captured_at, point);
    }
#pragma unroll
    for (int word = 0; word < 2; word++) {
      const u32* of_word = keys + word * 2 * (POINTS + 1);
      if (point == move.action) change[word] += of_word[move.player * (POINTS + 1) + point];
      if (captured) change[word] -= of_word[(1 - move.player) * (POINTS + 1) + point];
    }
  }
  team_sync();
  if (SUICIDE && !board.joined_alive && board.captures == 0) {
#pragma unroll
    for (int k = 0; k < EACH; k++) {
      const int point = thread + k * TEAM;
      if (point >= POINTS) continue;
      const int here = place_of(point);
      if (board.chain[here] != number) continue;
      board.chain[here] = 0;
#pragma unroll
      for (int word = 0; word < 2; word++)
        change[word] -= keys[(word * 2 + move.player) * (POINTS + 1) + point];
    }
  }
#pragma unroll
  for (int word = 0; word < 2; word++)
    if (change[word]) atomicAdd(&board.change[word], change[word]);
  team_sync();
}

// Black's points minus White's: stones, and empty points that one colour alone reaches.
__device__ int score(Board& board, int thread) {
#pragma unroll
  for (int k = 0; k < EACH; k++) {
    const int point = thread + k * TEAM;
    if (point >= POINTS) continue;
    const int here = place_of(point), chain = board.chain[here];
    board.reached[here] = chain == 0 ? 0 : 1 + ((chain - 1) & 1);
  }
  if (thread == 0) board.area = 0;
  team_sync();
  for (;;) {
    if (thread == 0) board.grew = 0;
    team_sync();
    bool grew = false;
#pragma unroll
    for (int k = 0; k < EACH; k++) {
      const int point = thread + k * TEAM;
      if (point >= POINTS) continue;
      const int here = place_of(point);
      if (board.chain[here] != 0) continue;
      int wider = board.reached[here];
#pragma unroll
      for (int side = 0; side < 4; side++) wider |= board.reached[here + step_to(side)];
      grew |= wider != board.reached[here];
      board.reached[here] = wider;
    }
    if (grew) board.grew = 1;
    team_sync();
    const bool again = board.grew;
    team_sync();
    if (!again) break;
  }
  int area = 0;
#pragma unroll
  for (int k = 0; k < EACH; k++) {
    const int point = thread + k * TEAM;
    if (point >= POINTS) continue;
    const int reached = board.reached[place_of(point)];
    area += (reached == 1) - (reached == 2);
  }
  if (area) atomicAdd(&board.area, area);
  team_sync();
  return board.area;
}

// Sets `seen` for the points of this thread whose situation is among the first `count` positions of a list.
__device__ void find_repeats(const u32* list, int count, const u32 situation[2][EACH], bool* seen) {
  for (int at = 0; at < count; at++) {
    const uint2 past = reinterpret_cast<const uint2*>(list)[at];
#pragma unroll
    for (int k = 0; k < EACH; k++) seen[k] |= situation[0][k] == past.x && situation[1][k] == past.y;
  }
}

extern "C" __global__ void __launch_bounds__(TEAM * TEAMS) go_move_and_look(
    const CHAIN* chains, const i8* turn, const i16* moves, const i16* last, const i16* ko, const u32* hash,
    const u32* recent, const u32* history, const int* actions, const u8* stay, const u32* keys,
    CHAIN* chains_out, i8* turn_out, i16* moves_out, i16* last_out, i16* ko_out, u32* hash_out, u32* recent_out,
    i16* marks_out, int* ended_out, int* area_out) {
  __shared__ Board boards[TEAMS];
  const int team = threadIdx.x / TEAM, thread = threadIdx.x % TEAM;
  const int game = blockIdx.x * TEAMS + team;
  if (game >= BATCH) return;
  Board& board = boards[team];

  const int played = moves[game], newest = last[game * RECENT], second = last[game * RECENT + 1];
  const int chosen = actions[game];
  const bool over = (newest == POINTS && second == POINTS) || played >= MAX_MOVES, stays = stay[game] != 0;
  Move move;
  move.player = turn[game];
  move.rests = over || stays;
  move.action = move.rests ? POINTS : chosen;
  move.next_player = move.rests ? move.player : 1 - move.player;
  move.ended = over || (!stays && ((chosen == POINTS && newest == POINTS) || played + 1 >= MAX_MOVES));

  for (int place = thread; place < WIDE * WIDE; place += TEAM) {
    const int row = place / WIDE - 1, column = place % WIDE - 1;
    const bool inside = row >= 0 && row < SIZE && column >= 0 && column < SIZE;
    board.chain[place] = inside ? chains[game * POINTS + row * SIZE + column] : OUTSIDE;
    board.reached[place] = 0;
  }
  for (int point = thread; point < POINTS; point += TEAM) {
    board.liberties[point] = 0;
    if (SUPERKO) board.sums[0][point] = board.sums[SUPERKO][point] = 0;
  }
  if (thread < 4) board.alive[thread] = 0;
  if (thread < 2) board.change[thread] = 0;
  if (thread == 0) {
    board.captures = board.joined_alive = 0;
    board.captured_at = -1;
  }
  team_sync();

  int ko_now = move.rests ? ko[game] : -1;
  if (move.action < POINTS) {
    bool alone = true;  // no liberty and no own stone beside the new stone
#pragma unroll
    for (int side = 0; side < 4; side++) {
      const int near = board.chain[place_of(move.action) + step_to(side)];
      alone &= near == OUTSIDE || has_colour(near, 1 - move.player);
    }
    play_stone(board, move, keys, thread);
    if (board.captures == 1 && alone) ko_now = board.captured_at;
  }
  u32 now[2];
#pragma unroll
  for (int word = 0; word < 2; word++) now[word] = hash[game * 2 + word] + board.change[word];

  // The counters and the newest moves.
  if (thread == 0) {
    turn_out[game] = move.next_player;
    moves_out[game] = played + !move.rests;
    ko_out[game] = ko_now;
    ended_out[game] = move.ended;
  }
  if (thread < 2) hash_out[game * 2 + thread] = now[thread];
  int ago[RECENT];
#pragma unroll
  for (int k = 0; k < RECENT; k++)
    ago[k] = move.rests ? last[game * RECENT + k] : k == 0 ? chosen : last[game * RECENT + k - 1];
  if (thread < RECENT) {
    int mine = ago[0];
#pragma unroll
    for (int k = 1; k < RECENT; k++)
      if (thread == k) mine = ago[k];
    last_out[game * RECENT + thread] = mine;
  }
  if (SUPERKO)
    for (int slot = thread; slot < KEPT; slot += TEAM)
#pragma unroll
      for (int word = 0; word < 2; word++) {
        const u32 turn_key = SITUATIONAL ? keys[(word * 2 + move.next_player) * (POINTS + 1) + POINTS] : 0;
        const int source = move.rests ? slot : slot - 1;
        recent_out[(game * KEPT + slot) * 2 + word] =
            source < 0 ? now[word] + turn_key : recent[(game * KEPT + source) * 2 + word];
      }

  // Liberties and hashes of all chains: every empty point counts once for each chain around it.
  int around[EACH][4], chain[EACH];
#pragma unroll
  for (int k = 0; k < EACH; k++) {
    const int point = thread + k * TEAM;
    if (point >= POINTS) continue;
    const int here = place_of(point);
    chain[k] = board.chain[here];
    chains_out[game * POINTS + point] = chain[k];
#pragma unroll
    for (int side = 0; side < 4; side++) around[k][side] = board.chain[here + step_to(side)];
    if (chain[k] == 0) {
#pragma unroll
      for (int side = 0; side < 4; side++)
        if (is_stone(around[k][side]) && is_first(around[k], side))
          atomicAdd(&board.liberties[root_of(around[k][side])], 1u);
    } else if (SUPERKO) {
#pragma unroll
      for (int word = 0; word < 2; word++)
        atomicAdd(&board.sums[word][root_of(chain[k])],
                  keys[(word * 2 + ((chain[k] - 1) & 1)) * (POINTS + 1) + point]);
    }
  }
  team_sync();

  const int me = move.next_player;
  bool playable[EACH], banned[EACH];
  u32 situation[2][EACH];
#pragma unroll
  for (int k = 0; k < EACH; k++) {
    const int point = thread + k * TEAM;
    playable[k] = banned[k] = false;
    situation[0][k] = situation[1][k] = 0;
    if (point >= POINTS || chain[k] != 0) continue;
    bool lives = false, own_beside = false, captures[4], own[4];
#pragma unroll
    for (int side = 0; side < 4; side++) {
      const int near = around[k][side];
      const int count = is_stone(near) ? board.liberties[root_of(near)] : 0;
      own[side] = has_colour(near, me);
      captures[side] = has_colour(near, 1 - me) && count == 1;
      lives |= near == 0 || (own[side] && count >= 2) || captures[side];
      own_beside |= own[side];
    }
    playable[k] = lives || (SUICIDE && own_beside);
    banned[k] = point == ko_now;
    if (SUPERKO)
#pragma unroll
      for (int word = 0; word < 2; word++) {
        const u32* of_word = keys + word * 2 * (POINTS + 1);
        u32 after = now[word];
        if (SITUATIONAL) after += of_word[(1 - me) * (POINTS + 1) + POINTS];
        if (lives) after += of_word[me * (POINTS + 1) + point];
#pragma unroll
        for (int side = 0; side < 4; side++)
          if ((lives ? captures[side] : own[side]) && is_first(around[k], side))
            after -= board.sums[word][root_of(around[k][side])];
        situation[word][k] = after;
      }
  }
  if (SUPERKO) {
    // A state keeps a fixed number of positions, of which the new one, which cannot come again, is one.
    find_repeats(recent + game * KEPT * 2, KEPT - 1 + move.rests, situation, banned);
    find_repeats(history + game * OLDER * 2, min(played + 1, OLDER), situation, banned);
  }
#pragma unroll
  for (int k = 0; k < EACH; k++) {
    const int point = thread + k * TEAM;
    if (point >= POINTS) continue;
    int marks = ON;
    if (chain[k] != 0) {
      const u32 count = board.liberties[root_of(chain[k])];
      marks |= has_colour(chain[k], me) ? MINE : THEIRS;
      marks |= count == 1 ? ONE : count == 2 ? TWO : count == 3 ? THREE : 0;
    } else if (playable[k]) {
      marks |= banned[k] ? BANNED : move.ended ? 0 : LEGAL;
    }
#pragma unroll
    for (int k = 0; k < RECENT; k++)
      if (ago[k] == point) marks |= AGO << k;
    marks_out[game * POINTS + point] = marks;
  }
  const int area = move.ended ? score(board, thread) : 0;
  if (thread == 0) area_out[game] = area;
}
