// The walk through every game's tree, the new leaf with its backup, and the choices that the backup changes.
// See search/gpu.py for the arguments, and search/selection.py for the same formulas in plain JAX.
//
// Defined by the caller: BATCH, SLOTS (nodes of a tree), ACTIONS, TEAM and TEAMS, the settings of the search in capital
// letters, GUMBEL (1, or 0 for PUCT), LISTED (the length of a node's list of legal moves, or 0: all moves are looked at),
// SCORED (1 if points count) with the parameters APART_NEW, APART_TABLE and APART,
// and for the positions of nodes STATES_IN, STATES_OUT (parameters) and COPY_STATES or STORE_STATES (statements).

#if LISTED
#define MOVES_IN const void*,
#define MOVES_TABLE i16* moves,
#define MOVES moves
#else
#define MOVES_IN
#define MOVES_TABLE
#define MOVES (i16*)nullptr
#endif
constexpr int WIDTH = LISTED ? LISTED : ACTIONS;
// Moves of a thread: in all positions, and in nearly all of them.
constexpr int MOST = (WIDTH + TEAM - 1) / TEAM, FEW = LISTED && MOST > 2 ? 2 : MOST;
constexpr int NONE = -1;
constexpr int SHARED_BYTES = 48 * 1024;  // of a block
constexpr int OVER = -1;  // in `onward`: the game is over here
constexpr u16 NEVER = 0xFC00;  // minus infinity in half precision: the logit of an illegal move

__device__ float F(double number) { return (float)number; }

// The tables of one tree.
struct Tree {
  i16* child;  // [SLOTS, ACTIONS]
  u16* logits;  // [SLOTS, ACTIONS], half precision
  int* visits;
  float* total;
  float* value;
  i8* player;
  const i16* moves;  // [SLOTS, 3, LISTED]: the legal moves in ascending order, then NONE; their logits; their children
};

#define EACH_MOVE _Pragma("unroll") for (int k = 0; k < EACH; k++)

// The moves of a node, as far as this thread looks at them; values from the side of the player who moves there.
template <int EACH>
struct Row {
  float logits[EACH], visits[EACH], total[EACH];
  int action[EACH], child[EACH];  // NONE where there is none
  float node_visits, node_value, first_value;

  __device__ bool legal(int k) const { return logits[k] > -INFINITE; }
  __device__ float mean(int k) const { return total[k] / fmaxf(visits[k], 1.0f); }
};

// At a root, the tables of all moves are read: there, moves may have become illegal since they were listed.
template <bool ROOT, int FIRST, int EACH>
__device__ void read_moves(Row<EACH>& row, const Tree& tree, int node, int thread) {
  const i16* list = tree.moves + (long long)node * 3 * LISTED;
  const i16* child = tree.child + (long long)node * ACTIONS;
  const u16* logits = tree.logits + (long long)node * ACTIONS;
#pragma unroll
  for (int k = FIRST; k < EACH; k++) {
    const int place = thread + k * TEAM;
    const bool there = place < WIDTH;
    row.action[k] = !there ? NONE : LISTED ? list[place] : place;
    if (LISTED && !ROOT) {
      row.logits[k] = there ? half_to_float(list[LISTED + place]) : -INFINITE;
      row.child[k] = there ? list[2 * LISTED + place] : NONE;
    } else {
      const int action = row.action[k];
      row.logits[k] = action >= 0 ? half_to_float(logits[action]) : -INFINITE;
      row.child[k] = action >= 0 ? child[action] : NONE;
    }
  }
}

template <int EACH>
__device__ void read_visits(Row<EACH>& row, const Tree& tree, int node) {
  const float sign = 1.0f - 2.0f * tree.player[node];
  row.node_visits = tree.visits[node];
  row.node_value = sign * tree.total[node] / fmaxf(row.node_visits, 1.0f);
  row.first_value = sign * tree.value[node];
  EACH_MOVE {
    const bool known = row.child[k] >= 0;
    row.visits[k] = known ? (float)tree.visits[row.child[k]] : 0.0f;
    row.total[k] = known ? sign * tree.total[row.child[k]] : 0.0f;
  }
}

// `choose` of the first EACH moves of each thread; the first READ have been read.
template <bool ROOT, int EACH, int READ, class Choose>
__device__ Best choice_of(const Row<READ>& read, const Tree& tree, int node, int thread, const Choose& choose) {
  Row<EACH> row;
#pragma unroll
  for (int k = 0; k < EACH && k < READ; k++) {
    row.action[k] = read.action[k];
    row.logits[k] = read.logits[k];
    row.child[k] = read.child[k];
  }
  read_moves<ROOT, READ>(row, tree, node, thread);
  read_visits(row, tree, node);
  return choose(row);
}

// `choose` of the row of a node, which has as many moves as it needs.
template <bool ROOT, class Choose>
__device__ Best choice(const Tree& tree, int node, int thread, const Choose& choose) {
  Row<FEW> read;
  read_moves<ROOT, 0>(read, tree, node, thread);
  const bool last = read.action[FEW - 1] >= 0;
  if (FEW < MOST && __any_sync(~0u, last && thread == TEAM - 1))
    return choice_of<ROOT, MOST>(read, tree, node, thread, choose);
  if (LISTED && FEW > 1 && !__any_sync(~0u, last)) return choice_of<ROOT, 1>(read, tree, node, thread, choose);
  return choice_of<ROOT, FEW>(read, tree, node, thread, choose);
}

template <int EACH>
__device__ float total_visits(const Row<EACH>& row) {
  float sum = 0;
  EACH_MOVE sum += row.visits[k];
  return team_count(sum);
}

// Probabilities; -inf gives 0.
template <int EACH>
__device__ void softmax(const Row<EACH>& row, const float* logits, float* weights) {
  float highest = -LARGEST_FLOAT, sum = 0;
  EACH_MOVE highest = fmaxf(highest, logits[k]);
  highest = team_largest(highest);
  EACH_MOVE sum += weights[k] = expf(logits[k] - highest);
  sum = fmaxf(team_sum(sum), TINIEST_FLOAT);
  EACH_MOVE weights[k] /= sum;
}

// A score that is not a number counts as the lowest, so that there is always a move.
template <int EACH>
__device__ Best best_of(const Row<EACH>& row, const float* scores, int thread) {
  Best best = {-INFINITE, ACTIONS + thread, NONE};
  EACH_MOVE {
    const bool counts = row.legal(k) && scores[k] > -INFINITE;
    if (row.action[k] >= 0) best.take({counts ? scores[k] : -INFINITE, row.action[k], row.child[k]});
  }
  return team_best(best);
}

template <int EACH>
__device__ void puct_scores(const Row<EACH>& row, const float* prior, float reduction, float* scores) {
  float seen = 0;
  EACH_MOVE seen += row.visits[k] > 0 ? prior[k] : 0.0f;
  const float unvisited = row.node_value - reduction * sqrtf(team_sum(seen));
  const float growth = logf((row.node_visits + F(C_BASE) + 1.0f) / F(C_BASE));
  const float exploration = (F(C_INIT) + growth) * sqrtf(row.node_visits);
  EACH_MOVE {
    const float value = row.visits[k] > 0 ? row.mean(k) : unvisited;
    scores[k] = value + exploration * prior[k] / (1.0f + row.visits[k]);
  }
}

template <int EACH>
__device__ Best puct_below(const Row<EACH>& row, int thread) {
  float prior[EACH], scores[EACH];
  EACH_MOVE prior[k] = expf(row.logits[k]);
  puct_scores(row, prior, F(FPU_REDUCTION), scores);
  return best_of(row, scores, thread);
}

template <int EACH>
__device__ Best puct_at_root(const Row<EACH>& row, const float* noise, int thread) {
  float prior[EACH], scores[EACH];
  if (ROOT_TEMPERATURE == 1.0) {
    EACH_MOVE prior[k] = expf(row.logits[k]);
  } else {
    float flat[EACH];
    EACH_MOVE flat[k] = row.logits[k] / F(ROOT_TEMPERATURE);
    softmax(row, flat, prior);
  }
  EACH_MOVE prior[k] = F(1.0 - NOISE_SHARE) * prior[k] + F(NOISE_SHARE) * noise[k];
  puct_scores(row, prior, F(ROOT_FPU_REDUCTION), scores);
  if (FORCED_PLAYOUTS > 0) {
    const float visits = total_visits(row);
    EACH_MOVE
      if (row.visits[k] > 0 && row.visits[k] < sqrtf(F(FORCED_PLAYOUTS) * prior[k] * visits)) scores[k] = INFINITE;
  }
  return best_of(row, scores, thread);
}

// The prior's logits plus the completed values, rescaled to [0, 1] over the legal moves.
template <int EACH>
__device__ void improved_logits(const Row<EACH>& row, float visits, float* improved) {
  float prior = 0, weighted = 0, most = 0;
  EACH_MOVE
    if (row.visits[k] > 0) {
      const float share = expf(row.logits[k]);
      prior += share;
      weighted += share * row.mean(k);
      most = fmaxf(most, row.visits[k]);
    }
  weighted = team_sum(weighted) / fmaxf(team_sum(prior), TINIEST_FLOAT);
  const float mixed = (row.first_value + visits * weighted) / (visits + 1.0f);
  float lowest = -INFINITE, highest = -INFINITE;
  EACH_MOVE {
    improved[k] = row.visits[k] > 0 ? row.mean(k) : mixed;
    if (row.legal(k)) {
      lowest = fmaxf(lowest, -improved[k]);
      highest = fmaxf(highest, improved[k]);
    }
  }
  lowest = -team_largest(lowest);
  highest = team_largest(highest);
  const float weight = (F(VISIT_OFFSET) + team_largest(most)) * F(VALUE_SCALE);
  const float range = fmaxf(highest - lowest, fmaxf(F(VALUE_RANGE), 1e-8f));
  EACH_MOVE {
    const float rescaled = (improved[k] - lowest) / range;
    improved[k] = row.legal(k) ? row.logits[k] + weight * rescaled : -INFINITE;
  }
}

template <int EACH>
__device__ Best gumbel_below(const Row<EACH>& row, int thread) {
  float improved[EACH], policy[EACH];
  const float visits = total_visits(row);
  improved_logits(row, visits, improved);
  softmax(row, improved, policy);
  EACH_MOVE policy[k] -= row.visits[k] / (1.0f + visits);
  return best_of(row, policy, thread);
}

// Sequential halving: the visits that the next move must have had so far in this search.
__device__ int wanted_visits(int considered, int budget, int done) {
  if (considered <= 1) return done;
  int phases = 0;
  for (int survivors = 1; survivors < considered; survivors *= 2) phases++;
  int survivors = considered, start = 0, given = 0;
  for (int phase = 0; phase < HALVINGS; phase++) {
    const int rounds = max(budget / (phases * survivors), 1), length = rounds * survivors;
    if (done < start + length || survivors <= 2) return given + (done - start) / survivors;
    start += length;
    given += rounds;
    survivors = max(survivors / 2, 2);
  }
  return given + (done - start) / 2;
}

template <int EACH>
__device__ Best gumbel_at_root(const Row<EACH>& row, const float* noise, const float* base, int budget, int done, int thread) {
  float legal = 0, scores[EACH];
  EACH_MOVE legal += row.legal(k);
  const int considered = min((int)team_count(legal), min(max((budget + CONSIDERED_VISITS - 1) / CONSIDERED_VISITS, 2), CONSIDERED));
  const float wanted = wanted_visits(considered, budget, done);
  improved_logits(row, total_visits(row), scores);
  EACH_MOVE scores[k] = row.visits[k] - base[k] == wanted ? noise[k] + scores[k] : -1e9f;
  return best_of(row, scores, thread);
}

__device__ Tree tree_of(int game, i16* child, u16* logits, int* visits, float* total, float* value, i8* player,
                        const i16* moves) {
  const long long nodes = (long long)game * SLOTS;
  return {child + nodes * ACTIONS, logits + nodes * ACTIONS, visits + nodes, total + nodes, value + nodes,
          player + nodes, moves + nodes * 3 * LISTED};
}

template <int ALIGNED> struct WordOf { using Type = u8; };
template <> struct WordOf<2> { using Type = u16; };
template <> struct WordOf<4> { using Type = u32; };

// One array of a position, of BYTES bytes, held by all threads of the team. A program first loads all arrays and then
// stores them: an array that is stored before the next is loaded makes that wait for it. Only a large one is not held.
constexpr int MOST_HELD = 16;  // words of a thread
template <int BYTES>
struct Held {
  using Word = typename WordOf<BYTES % 4 == 0 ? 4 : BYTES % 2 == 0 ? 2 : 1>::Type;
  static constexpr int COUNT = BYTES / (int)sizeof(Word), EACH = (COUNT + TEAM - 1) / TEAM;
  static constexpr bool LARGE = EACH > MOST_HELD;
  Word words[LARGE ? 1 : EACH];
  const Word* source;

  __device__ void load(const u8* from, int thread) {
    source = (const Word*)from;
#pragma unroll
    for (int k = 0; k < (LARGE ? 0 : EACH); k++)
      if (thread + k * TEAM < COUNT) words[k] = source[thread + k * TEAM];
  }
  __device__ void store(u8* to, int thread) const {
#pragma unroll
    for (int k = 0; k < (LARGE ? 0 : EACH); k++)
      if (thread + k * TEAM < COUNT) ((Word*)to)[thread + k * TEAM] = words[k];
    if (LARGE)
      for (int at = thread; at < COUNT; at += TEAM) ((Word*)to)[at] = source[at];
  }
};

#ifdef TREE_WALK
extern "C" __global__ void __launch_bounds__(TEAM * TEAMS) tree_walk(
    const int* roots, const int* dones, const int* budgets, const int* useds, const float* noises, const int* bases,
    i16* child, u16* logits, int* visits, float* total, float* value, i8* player, MOVES_TABLE const i8* over,
    const int* onward, const i16* free STATES_IN, int* parent_out, int* action_out, int* node_out, int* fresh_out,
    int* moves_out, int* active_out, int* length_out, i16* trail STATES_OUT) {
  const int thread = threadIdx.x % TEAM, game = blockIdx.x * TEAMS + threadIdx.x / TEAM;
  if (game >= BATCH) return;
  const Tree tree = tree_of(game, child, logits, visits, total, value, player, MOVES);
  const int root = roots[game], done = dones[game], budget = budgets[game], used = useds[game];
  const long long nodes = (long long)game * SLOTS;
  const bool evaluated = tree.visits[root] > 0, active = done < budget && over[nodes + root] == 0;
  const int* choices = onward + nodes;
  // Each level of a walk waits for the one before. So the choices of all nodes are fetched at once if there is room, while
  // the root's is computed.
  constexpr bool FETCHED = SLOTS * TEAMS * 4 + (TEAM_WARPS > 1 ? 256 : 0) <= SHARED_BYTES;  // larger teams need some
  if (FETCHED) {
    __shared__ int fetched[FETCHED ? TEAMS * SLOTS : 1];
    int* mine = fetched + threadIdx.x / TEAM * SLOTS;
    for (int node = thread; node < SLOTS; node += TEAM) fetch(choices + node, mine + node);
    choices = mine;
  }

  const Best first = choice<true>(tree, root, thread, [&](const auto& row) {
    constexpr int EACH = sizeof(row.action) / sizeof(int);
    float noise[EACH], base[EACH];
    EACH_MOVE {
      const int action = row.action[k];
      noise[k] = action >= 0 ? noises[game * ACTIONS + action] : 0.0f;
      base[k] = GUMBEL && action >= 0 ? bases[game * ACTIONS + action] : 0.0f;
    }
    return GUMBEL ? gumbel_at_root(row, noise, base, budget, done, thread) : puct_at_root(row, noise, thread);
  });

  const bool walks = active && evaluated;
  int parent = root, action = walks ? first.index : 0, reached = walks ? first.extra : NONE, length = 1;
  bool ended = false;
  if (thread == 0) trail[nodes] = root;
  await_fetched();
  team_sync();
  while (reached >= 0 && !ended) {
    const int next = choices[reached];
    ended = next == OVER;
    if (ended) break;
    parent = reached;
    if (thread == 0) trail[nodes + length] = parent;
    length++;
    action = next & 0xFFFF;
    reached = (next >> 16) - 1;
  }
  const bool is_new = walks && !ended;
  const int slot = used < SLOTS ? free[nodes + used] : NONE, leaf = ended ? reached : NONE;
  if (thread == 0) {
    parent_out[game] = parent;
    action_out[game] = action;
    node_out[game] = evaluated ? (is_new ? slot : leaf) : root;
    fresh_out[game] = active && (is_new || !evaluated);
    moves_out[game] = is_new;
    active_out[game] = active;
    length_out[game] = active ? length : 0;
  }
  COPY_STATES
}
#endif

#ifdef TREE_EXPAND
// The logits of a new node, which has no children yet, and its list of legal moves in ascending order; further ones than
// the list can take are left out. Many logits are loaded before the first is stored.
__device__ void write_moves(const u16* from, u16* logits, i16* child, i16* moves, int thread) {
  constexpr int ROUNDS = (ACTIONS + TEAM - 1) / TEAM, AHEAD = ROUNDS < 30 ? ROUNDS : 30;
  int count = 0;
  for (int first = 0; first < ROUNDS; first += AHEAD) {
    u16 loaded[AHEAD];
#pragma unroll
    for (int k = 0; k < AHEAD; k++) {
      const int action = (first + k) * TEAM + thread;
      loaded[k] = action < ACTIONS ? from[action] : NEVER;
    }
#pragma unroll
    for (int k = 0; k < AHEAD; k++) {
      const int action = (first + k) * TEAM + thread;
      if (action < ACTIONS) {
        logits[action] = loaded[k];
        child[action] = NONE;
      }
      if (LISTED) {
        const bool legal = loaded[k] != NEVER;  // one that is not a number is legal, too
        const u32 found = __ballot_sync(~0u, legal);
        const int place = count + __popcll(found & ((1u << thread) - 1));
        if (legal && place < LISTED) {
          moves[place] = action;
          moves[LISTED + place] = loaded[k];
        }
        count += __popcll(found);
      }
    }
  }
  for (int place = thread; place < LISTED; place += TEAM) {
    moves[2 * LISTED + place] = NONE;
    if (place < count) continue;
    moves[place] = NONE;
    moves[LISTED + place] = (i16)NEVER;
  }
}

// Sums over visits that no choice depends on, or what one visit adds to them.
struct alignas(8) Apart { float value, score; };

extern "C" __global__ void __launch_bounds__(TEAM * TEAMS) tree_expand(
    const int* roots, const int* dones, const int* useds, const int* parents, const int* actions, const int* leaves,
    const int* freshes, const int* played, const int* actives, const int* lengths, const i16* trail,
    const u16* new_logits, const float* new_values, const i8* new_players, const i8* new_overs APART_NEW STATES_IN,
    const void*, const void*, const void*, const void*, const void*, const void*, MOVES_IN const void*, const void*,
    const void* APART_TABLE TABLES_IN, i16* child, u16* logits, int* visits, float* total, float* value, i8* player, MOVES_TABLE
    i8* over, i16* above, int* onward APART STATES_OUT, int* used_out, int* done_out, int* leaf_out) {
  const int thread = threadIdx.x % TEAM, game = blockIdx.x * TEAMS + threadIdx.x / TEAM;
  if (game >= BATCH) return;
  const long long nodes = (long long)game * SLOTS;
  const int root = roots[game], parent = parents[game], action = actions[game], node = leaves[game];
  const bool fresh = freshes[game], active = actives[game], evaluated = visits[nodes + root] > 0;
  const bool stored = fresh && active && node >= 0, grown = stored && node != root;
  team_sync();  // everybody has read the root's visits, which the backup changes
  if (stored) {
    const long long row = (nodes + node) * ACTIONS;
    write_moves(new_logits + game * ACTIONS, logits + row, child + row, MOVES + (nodes + node) * 3 * LISTED, thread);
    STORE_STATES
  }
  if (LISTED && grown) {
    i16* list = MOVES + (nodes + parent) * 3 * LISTED;
    for (int place = thread; place < LISTED; place += TEAM)
      if (list[place] == action) list[2 * LISTED + place] = node;
  }
  // A leaf for which there was no room counts for its parent. A root that is evaluated is a leaf and the whole trail.
  const float gain = node >= 0 && !fresh ? value[nodes + node] : new_values[game];
#if SCORED
  Apart more = new_aparts[game];
  if (node >= 0 && !fresh) {  // the end of a game: all of its visits were alike
    const float times = fmaxf(visits[nodes + node], 1.0f);
    more = {apart[nodes + node].value / times, apart[nodes + node].score / times};
  }
  team_sync();  // everybody has read what the backup changes
#endif
  if (node != root)
    for (int place = thread; place < lengths[game]; place += TEAM) {
      const int here = trail[nodes + place];
      visits[nodes + here] += 1;
      total[nodes + here] += gain;
#if SCORED
      apart[nodes + here] = {apart[nodes + here].value + more.value, apart[nodes + here].score + more.score};
#endif
    }
  if (thread) return;

  const bool ends = node >= 0 && (!fresh || new_overs[game]);
  if (stored) {
    value[nodes + node] = gain;
    player[nodes + node] = new_players[game];
    over[nodes + node] = new_overs[game];
    above[nodes + node] = node == root ? NONE : parent;
    visits[nodes + node] = 1;
    total[nodes + node] = gain;
#if SCORED
    apart[nodes + node] = more;
#endif
    if (ends) onward[nodes + node] = OVER;
  } else if (active && node >= 0) {
    visits[nodes + node] += 1;
    total[nodes + node] += gain;
#if SCORED
    apart[nodes + node] = {apart[nodes + node].value + more.value, apart[nodes + node].score + more.score};
#endif
  }
  if (grown) child[(nodes + parent) * ACTIONS + action] = node;
  used_out[game] = useds[game] + grown;
  done_out[game] = dones[game] + (active && evaluated);
  // Beyond the end of a game nothing is followed.
  leaf_out[game] = grown && !ends ? node : NONE;
}
#endif

#ifdef TREE_ROOT
// New rows of all tables at one node of each tree, or of none.
extern "C" __global__ void __launch_bounds__(TEAM * TEAMS) tree_root(const int* nodes VALUES_IN TABLES_IN TABLES_OUT) {
  const int thread = threadIdx.x % TEAM, game = blockIdx.x * TEAMS + threadIdx.x / TEAM;
  if (game >= BATCH || nodes[game] < 0 || nodes[game] >= SLOTS) return;
  const long long node = (long long)game * SLOTS + nodes[game];
  PUT_ROWS
}
#endif

#ifdef TREE_PLAN
// PLANNERS teams share the nodes of one trail and its new leaf. The root, first on the trail, is left to the walk: what
// it follows depends on noise and on how far the search is.
extern "C" __global__ void __launch_bounds__(TEAM * TEAMS, PLAN_BLOCKS) tree_plan(
    const int* lengths, const i16* trail, const int* leaves, i16* child, u16* logits, int* visits, float* total,
    float* value, i8* player, MOVES_TABLE const void*, int* onward) {
  const int thread = threadIdx.x % TEAM, team = blockIdx.x * TEAMS + threadIdx.x / TEAM;
  const int game = team / PLANNERS;
  if (game >= BATCH) return;
  const Tree tree = tree_of(game, child, logits, visits, total, value, player, MOVES);
  const int length = lengths[game], leaf = leaves[game];
  for (int place = 1 + team % PLANNERS; place < length + (leaf >= 0); place += PLANNERS) {
    const int node = place < length ? trail[(long long)game * SLOTS + place] : leaf;
    const Best best = choice<false>(
        tree, node, thread, [&](const auto& row) { return GUMBEL ? gumbel_below(row, thread) : puct_below(row, thread); });
    if (thread == 0) onward[(long long)game * SLOTS + node] = best.index | (best.extra + 1) << 16;
  }
}
#endif
