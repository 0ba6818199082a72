// The areas of a batch of boards, as go_katago.py finds them, by Benson's algorithm. See go_gpu.py for the arguments.
//
// A team of TEAM threads works on one board in shared memory, which has a border of OUTSIDE points.
//
// Defined by the caller: SIZE, TEAM, TEAMS (per block), BATCH, SUICIDE (0 or 1), CHAIN (the type of a chain's number in
// memory). A point of `chains` is 0 if it is empty, otherwise 1 + 2 * root + colour, where root is a stone of the chain.

constexpr int POINTS = SIZE * SIZE;
constexpr int WIDE = SIZE + 2;
constexpr int OUTSIDE = 0xFFFF;

// Facts about a region, by its first point. The first four: a point does not touch one of the chains beside the first
// empty point of the region, counted upwards from the point above that.
enum { MISSED = 1, STONES = 16, BORDER = 32, SHARED = 64 };

struct Board {
  u16 chain[WIDE * WIDE];
  u16 region[2][POINTS];  // by colour: the first point of the region without its stones
  int empty[2][POINTS];   // by region: POINTS minus its first empty point
  u32 facts[2][POINTS];   // by region
  u32 inner[2][POINTS];   // by region: points that touch no stone of the colour
  u32 eyes[POINTS];       // by chain: vital regions that no other kind of chain borders
  u8 alive[POINTS];       // by chain
  int changed;
};

__device__ bool has_colour(int chain, int colour) {
  return chain != 0 && chain != OUTSIDE && ((chain - 1) & 1) == colour;
}
__device__ int root_of(int chain) { return (chain - 1) >> 1; }
__device__ int place_of(int point) { return (point / SIZE + 1) * WIDE + point % SIZE + 1; }
__device__ int step_to(int side) { return side == 0 ? -WIDE : side == 1 ? WIDE : side == 2 ? -1 : 1; }
__device__ int next_to(int side) { return side == 0 ? -SIZE : side == 1 ? SIZE : side == 2 ? -1 : 1; }

// Calls a function with every colour and every point that has no stone of it.
template <class Function>
__device__ void each_outside(const Board& board, int thread, Function function) {
  for (int k = thread; k < 2 * POINTS; k += TEAM) {
    const int colour = k / POINTS, point = k % POINTS;
    if (!has_colour(board.chain[place_of(point)], colour)) function(colour, point);
  }
  team_sync();
}

// Repeats a step until it changes nothing.
template <class Function>
__device__ void until_stable(Board& board, int thread, Function step) {
  for (;;) {
    if (thread == 0) board.changed = 0;
    team_sync();
    step();
    const bool again = board.changed;
    team_sync();
    if (!again) break;
  }
}

extern "C" __global__ void __launch_bounds__(TEAM * TEAMS) go_areas(const CHAIN* chains, u8* owners) {
  __shared__ Board boards[TEAMS];
  const int team = threadIdx.x / TEAM, thread = threadIdx.x % TEAM;
  const int game = blockIdx.x * TEAMS + team;
  if (game >= BATCH) return;
  Board& board = boards[team];
  for (int place = thread; place < WIDE * WIDE; place += TEAM) {
    const int row = place / WIDE - 1, column = place % WIDE - 1;
    const bool in = row >= 0 && row < SIZE && column >= 0 && column < SIZE;
    board.chain[place] = in ? chains[game * POINTS + row * SIZE + column] : OUTSIDE;
  }
  for (int k = thread; k < 2 * POINTS; k += TEAM) {
    const int colour = k / POINTS, point = k % POINTS;
    board.region[colour][point] = point;
    board.empty[colour][point] = 0;
    board.facts[colour][point] = board.inner[colour][point] = 0;
    board.alive[point] = 1;
  }
  team_sync();

  until_stable(board, thread, [&] {
    each_outside(board, thread, [&](int colour, int point) {
      const int before = board.region[colour][point], here = place_of(point);
      int lowest = before;
      for (int side = 0; side < 4; side++) {
        const int near = board.chain[here + step_to(side)];
        if (near != OUTSIDE && !has_colour(near, colour))
          lowest = min(lowest, (int)board.region[colour][point + next_to(side)]);
      }
      lowest = board.region[colour][lowest];
      if (lowest == before) return;
      board.region[colour][point] = lowest;
      board.changed = 1;
    });
  });

  each_outside(board, thread, [&](int colour, int point) {
    if (board.chain[place_of(point)] == 0)
      atomicMax(&board.empty[colour][board.region[colour][point]], POINTS - point);
  });

  // The chain of a colour beside the first empty point of a region; 0 if there is none on that side.
  const auto beside_first = [&](int colour, int region, int side) {
    const int near = board.chain[place_of(POINTS - board.empty[colour][region]) + step_to(side)];
    return has_colour(near, colour) ? near : 0;
  };
  each_outside(board, thread, [&](int colour, int point) {
    const int here = place_of(point), region = board.region[colour][point];
    const bool empty = board.chain[here] == 0;
    u32 facts = empty ? 0 : STONES;
    bool touches = false;
    for (int side = 0; side < 4; side++) {
      const int choice = beside_first(colour, region, side);
      bool reaches = false;
      for (int other = 0; other < 4; other++) {
        const int near = board.chain[here + step_to(other)];
        touches |= has_colour(near, colour);
        reaches |= choice != 0 && near == choice;
      }
      if ((empty || SUICIDE) && !reaches) facts |= MISSED << side;
    }
    if (touches) facts |= BORDER;
    else atomicAdd(&board.inner[colour][region], 1u);
    if (facts) atomicOr(&board.facts[colour][region], facts);
  });

  until_stable(board, thread, [&] {
    for (int k = thread; k < 2 * POINTS; k += TEAM) {
      board.facts[k / POINTS][k % POINTS] &= ~(u32)SHARED;
      board.eyes[k % POINTS] = 0;
    }
    team_sync();
    each_outside(board, thread, [&](int colour, int point) {
      bool doubtful = false;
      for (int side = 0; side < 4; side++) {
        const int near = board.chain[place_of(point) + step_to(side)];
        doubtful |= has_colour(near, colour) && !board.alive[root_of(near)];
      }
      if (doubtful) atomicOr(&board.facts[colour][board.region[colour][point]], (u32)SHARED);
    });
    each_outside(board, thread, [&](int colour, int point) {
      if (board.region[colour][point] != point || board.facts[colour][point] & SHARED) return;
      for (int side = 0; side < 4; side++) {
        const int choice = beside_first(colour, point, side);
        bool counts = choice != 0 && !(board.facts[colour][point] & MISSED << side);
        for (int earlier = 0; earlier < side; earlier++) counts &= beside_first(colour, point, earlier) != choice;
        if (counts) atomicAdd(&board.eyes[root_of(choice)], 1u);
      }
    });
    for (int point = thread; point < POINTS; point += TEAM) {
      if (!board.alive[point] || board.eyes[point] >= 2) continue;
      board.alive[point] = 0;
      if (root_of(board.chain[place_of(point)]) == point) board.changed = 1;
    }
    team_sync();
  });

  for (int point = thread; point < POINTS; point += TEAM) {
    const int chain = board.chain[place_of(point)];
    bool safe[2], held[2];
    for (int colour = 0; colour < 2; colour++) {
      const int region = board.region[colour][point];
      const u32 facts = board.facts[colour][region];
      const bool own = has_colour(chain, colour), pure = !own && (facts & (STONES | BORDER)) == BORDER;
      const bool surrounded = !own && (facts & (SHARED | BORDER)) == BORDER;
      safe[colour] = own ? board.alive[root_of(chain)] : surrounded && (pure || board.inner[colour][region] <= 1);
      held[colour] = own || pure;
    }
    const bool white = safe[1] || (held[1] && !safe[0]);
    owners[game * POINTS + point] = white ? 2 : safe[0] || held[0] ? 1 : 0;
  }
}
