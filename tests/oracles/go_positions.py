"""Named Go positions, reached by real moves, with what hand reasoning says about the side to move.

Black (X) plays first, colours alternate, and `pass` stands where a colour moves twice. Points are GTP
coordinates: columns A to T without I, row 1 at the bottom. Each comment names the side to move and says why.
"""

from dataclasses import dataclass
from math import isqrt

KO_RULES = ("simple", "positional", "situational")
SUPERKO = ("positional", "situational")
BUT_POSITIONAL = ("simple", "situational")  # the two that allow the same board with the other side to move
COLUMNS = "ABCDEFGHJKLMNOPQRST"  # GTP leaves out I, which looks like 1


@dataclass(frozen=True)
class Case:
    """A position after `moves` from the empty board; points named in neither set are not asserted."""

    name: str
    size: int
    ko: str  # one of KO_RULES
    suicide: bool  # whether the suicide of several stones is allowed
    moves: list[str]
    legal: set[str]
    illegal: set[str]
    score: float | None  # Black's area minus White's, komi 0; None where it was not counted
    diagram: str  # the position after `moves`, X Black, O White


def action_of(vertex: str, size: int) -> int:
    """The action row*size+col (row 0 at the top) of a GTP vertex; size*size for a pass."""
    if vertex == "pass":
        return size * size
    return (size - int(vertex[1:])) * size + COLUMNS.index(vertex[0])


def marks_of(diagram: str) -> list[str]:
    """The X, O and . of a diagram, row by row from the top; the labels around it are left out."""
    return [mark for mark in diagram.split() if mark in ("X", "O", ".")]


def cases(
    name: str,
    diagram: str,
    moves: str,
    legal: str = "",
    illegal: str = "",
    score: float | None = None,
    rules: tuple[str, ...] = KO_RULES,
    suicide: tuple[bool, ...] = (False, True),
) -> list[Case]:
    """One case per ko rule and suicide setting under which the same holds. A pass is always legal."""
    size = isqrt(len(marks_of(diagram)))
    yes, no = {"pass", *legal.split()}, {*illegal.split()}
    return [
        Case(f"{name}, {ko}{', suicide' * allowed}", size, ko, allowed, moves.split(), yes, no, score, diagram)
        for ko in rules
        for allowed in suicide
    ]


CASES: list[Case] = []

# --- Scoring ------------------------------------------------------------------------------------------------

# Black to move. The one empty region reaches no stone at all: it is nobody's.
EMPTY = """
5 . . . . .
4 . . . . .
3 . . . . .
2 . . . . .
1 . . . . .
  A B C D E"""
CASES += cases("empty board", EMPTY, "", legal="A1 A5 C3 E1 E5", score=0)

# White to move. The rest of the board reaches only Black: all 25 points are his.
ONE_BLACK = """
5 . . . . .
4 . . . . .
3 . . X . .
2 . . . . .
1 . . . . .
  A B C D E"""
CASES += cases("one black stone", ONE_BLACK, "C3", legal="A1 C2 E5", illegal="C3", score=25)

# Black to move. The same in the other colour.
ONE_WHITE = """
5 . . . . .
4 . . . . .
3 . . O . .
2 . . . . .
1 . . . . .
  A B C D E"""
CASES += cases("one white stone", ONE_WHITE, "pass C3", legal="A1 C2 E5", illegal="C3", score=-25)

# Black to move. The empty region reaches both colours and is neutral: one stone each.
ONE_EACH = """
5 . . . . O
4 . . . . .
3 . . . . .
2 . . . . .
1 X . . . .
  A B C D E"""
CASES += cases("one stone each", ONE_EACH, "A1 E5", legal="A2 B1 C3", illegal="A1 E5", score=0)

# Black to move. 21 points each; the seven points of column D reach both colours and count for neither.
WALLS = """
7 . . X . O . .
6 . . X . O . .
5 . . X . O . .
4 . . X . O . .
3 . . X . O . .
2 . . X . O . .
1 . . X . O . .
  A B C D E F G"""
WALLS_MOVES = "C1 E1 C2 E2 C3 E3 C4 E4 C5 E5 C6 E6 C7 E7"
CASES += cases("neutral column", WALLS, WALLS_MOVES, legal="A1 B4 D1 D4 D7 F4", illegal="C4 E4", score=0)

# Seki, Black to move. Both chains have exactly the liberties B4 and B1; whoever plays one is taken at the
# other. Both points reach both colours and count for neither: 6 stones against 8.
SEKI = """
4 X . O O
3 X X O O
2 X X O O
1 X . O O
  A B C D"""
SEKI_MOVES = "A4 C4 A3 D4 B3 C3 A2 D3 B2 C2 A1 D2 pass C1 pass D1"
CASES += cases("seki", SEKI, SEKI_MOVES, legal="B1 B4", illegal="A1 D1", score=-2)

# White to move. Black broke the seki: B1 is the last liberty of both chains. White's B1 takes Black's seven
# stones first and so is no suicide. One pass later the same point takes White's eight.
SEKI_BROKEN = """
4 X X O O
3 X X O O
2 X X O O
1 X . O O
  A B C D"""
CASES += cases("seki broken", SEKI_BROKEN, f"{SEKI_MOVES} B4", legal="B1", illegal="B4", score=-1)
CASES += cases("seki broken, Black's turn", SEKI_BROKEN, f"{SEKI_MOVES} B4 pass", legal="B1", score=-1)

# --- One ko -------------------------------------------------------------------------------------------------

# White to move. C3 alone took B3 alone and stands in atari: White may not take back at once. Under superko it
# is the same ban, because B3 would restore the board of one move ago, with Black to move as then.
KO = """
5 . . . . .
4 . X O . .
3 X . X O .
2 . X O . .
1 . . . . .
  A B C D E"""
KO_MOVES = "B4 C4 A3 D3 B2 C2 pass B3 C3"
CASES += cases("ko", KO, KO_MOVES, legal="A1 A4 A5 D2 D4 E3", illegal="B3 C3 A3")

# Black to move. The ban was White's alone: Black may end the ko by filling it.
CASES += cases("ko, then a pass", KO, f"{KO_MOVES} pass", legal="B3 A4 D4", illegal="C3 D3")

# White to move. White passed and Black played elsewhere: B3 may take C3, for E5 makes the board a new one.
KO_BLACK_ELSEWHERE = """
5 . . . . X
4 . X O . .
3 X . X O .
2 . X O . .
1 . . . . .
  A B C D E"""
CASES += cases("ko, pass and elsewhere", KO_BLACK_ELSEWHERE, f"{KO_MOVES} pass E5", legal="B3 D4", illegal="C3")

# White to move. White played elsewhere and Black passed: again B3 would make a new board.
KO_WHITE_ELSEWHERE = """
5 . . . . O
4 . X O . .
3 X . X O .
2 . X O . .
1 . . . . .
  A B C D E"""
CASES += cases("ko, elsewhere and pass", KO_WHITE_ELSEWHERE, f"{KO_MOVES} E5 pass", legal="B3 D4", illegal="C3")

# Black to move. White has taken with B3, and now it is Black who may not take back at C3. Superko: C3 would
# restore the board after E5, which stood with White to move too, namely after Black's pass.
KO_RETAKEN = """
5 . . . . O
4 . X O . .
3 X O . O .
2 . X O . .
1 . . . . .
  A B C D E"""
CASES += cases("ko retaken", KO_RETAKEN, f"{KO_MOVES} E5 pass B3", legal="D4 E4", illegal="C3 B3")

# White to move. H9 took J9 in the corner and has only that liberty (G9 and H8 are white): J9 is banned.
CORNER_KO = """
9 . . . . . . O X .
8 . . . . . . . O X
7 . . . . . . . . X
6 . . . . . . . . .
5 . . . . X . . . .
4 . . . . . . . . .
3 . . . . . . . . .
2 . . . . . . . . .
1 . . . . . . . . .
  A B C D E F G H J"""
CORNER_KO_MOVES = "J8 H8 J7 G9 E5 J9 H9"
CASES += cases("corner ko", CORNER_KO, CORNER_KO_MOVES, legal="G8 H7 J6 F9 E6 A1", illegal="J9 H9 J8")

# White to move. After the threat C3 and the answer C4, J9 is open.
CORNER_KO_THREAT = """
9 . . . . . . O X .
8 . . . . . . . O X
7 . . . . . . . . X
6 . . . . . . . . .
5 . . . . X . . . .
4 . . X . . . . . .
3 . . O . . . . . .
2 . . . . . . . . .
1 . . . . . . . . .
  A B C D E F G H J"""
CASES += cases("ko threat", CORNER_KO_THREAT, f"{CORNER_KO_MOVES} C3 C4", legal="J9 B4 C5 D4", illegal="C3 C4")

# White to move. C3 took the one stone B3 but joined D3: White's B3 takes two back. That is no ko, and
# leaves a board without D3 that never was.
PAIR_TAKES_ONE = """
5 . . . . .
4 . X O O .
3 X . X X O
2 . X O O .
1 . . . . .
  A B C D E"""
PAIR_MOVES = "B4 C4 A3 D4 B2 C2 D3 D2 pass E3 pass B3 C3"
CASES += cases("a pair takes one", PAIR_TAKES_ONE, PAIR_MOVES, legal="B3 A4 E4", illegal="C3 D3")

# Snapback, Black to move. C1 was thrown in and D1 took it; but D1 belongs to a chain of five whose last
# liberty is C1. No ko, and no suicide: C1 takes all five. As it stands, White has 5 stones and C1.
SNAPBACK = """
5 . . . . .
4 . . . . .
3 . X X X .
2 X O O O X
1 X O . O X
  A B C D E"""
SNAPBACK_MOVES = "B3 B2 C3 C2 D3 D2 A2 B1 A1 pass E2 pass E1 pass C1 D1"
CASES += cases("snapback", SNAPBACK, SNAPBACK_MOVES, legal="C1 A3 E3", illegal="D1 B1", score=13)

# White to move, the five are gone: each of their points has an empty neighbour and may be played.
SNAPPED_BACK = """
5 . . . . .
4 . . . . .
3 . X X X .
2 X . . . X
1 X . X . X
  A B C D E"""
SNAPPED_BACK_MOVES = f"{SNAPBACK_MOVES} C1"
CASES += cases("snapped back", SNAPPED_BACK, SNAPPED_BACK_MOVES, legal="B1 D1 B2 C2 D2", illegal="C1", score=25)

# --- Several kos --------------------------------------------------------------------------------------------
# Black holds the ko of a row with a stone on C (B empty), White with a stone on B (C empty).

# White to move. Row 5 was White's and row 3 Black's; C5 took row 5. B5 is banned, but the other ko may be
# taken: that is why a double ko is life. A4 is the suicide of one stone.
DOUBLE_KO = """
5 X . X O .
4 . X O . .
3 X . X O .
2 . X O . .
1 . . . . .
  A B C D E"""
DOUBLE_KO_MOVES = "A5 C4 B4 D5 A3 D3 B2 C2 C3 B5 C5"
CASES += cases("double ko", DOUBLE_KO, DOUBLE_KO_MOVES, legal="B3 D4", illegal="B5 A4")

# Black to move. Only the ko just taken is banned; Black may also connect at B5.
DOUBLE_KO_EXCHANGED = """
5 X . X O .
4 . X O . .
3 X O . O .
2 . X O . .
1 . . . . .
  A B C D E"""
CASES += cases("double ko taken", DOUBLE_KO_EXCHANGED, f"{DOUBLE_KO_MOVES} B3", legal="B5 A4 A2", illegal="C3")

# Black to move, after a black pass and B5. C5 is the plain ko ban. C3 would take row 3 and restore the board
# before C5, which stood with Black to move and would now stand with White to move: the position repeats, the
# situation does not.
DOUBLE_KO_LAP = """
5 X O . O .
4 . X O . .
3 X O . O .
2 . X O . .
1 . . . . .
  A B C D E"""
LAP_MOVES = f"{DOUBLE_KO_MOVES} B3 pass B5"
CASES += cases("double ko lap", DOUBLE_KO_LAP, LAP_MOVES, legal="C3 A4", illegal="C5", rules=BUT_POSITIONAL)
CASES += cases("double ko lap", DOUBLE_KO_LAP, LAP_MOVES, legal="A4", illegal="C3 C5", rules=("positional",))

# White to move. Before C5, Black to move, rows 5 and 1 were White's and row 3 Black's. Then C5, B3, C1, B5,
# C3 took one ko each, never the one just taken. White's B1 is the last of the lap: it restores the board with
# Black to move again, which both superkos forbid and the simple rule does not see. B3 is the plain ko ban; A2
# is a suicide of one, but A4 is not: with B5 white it takes A5's last liberty.
TRIPLE_KO = """
5 X O . O .
4 . X O . .
3 X . X O .
2 . X O . .
1 X . X O .
  A B C D E"""
TRIPLE_KO_MOVES = "A5 C4 B4 D5 A3 D3 B2 C2 A1 D1 C3 B5 pass B1 C5 B3 C1 B5 C3"
CASES += cases("triple ko", TRIPLE_KO, TRIPLE_KO_MOVES, legal="B1 A4 C5 D4", illegal="B3 A2", rules=("simple",))
CASES += cases("triple ko", TRIPLE_KO, TRIPLE_KO_MOVES, legal="A4 C5 D4", illegal="B1 B3 A2", rules=SUPERKO)

# Black to move, the lap complete as only the simple rule allows: the next may begin. C1 was just taken.
TRIPLE_KO_AGAIN = """
5 X O . O .
4 . X O . .
3 X . X O .
2 . X O . .
1 X O . O .
  A B C D E"""
AGAIN_MOVES = f"{TRIPLE_KO_MOVES} B1"
CASES += cases("triple ko again", TRIPLE_KO_AGAIN, AGAIN_MOVES, legal="C5 A4", illegal="C1", rules=("simple",))

# --- Send two, return one -----------------------------------------------------------------------------------

# White to move. After B2 White had B1, with A1 and C1 empty, and it was White's turn. A1 sent two stones, C1
# took A1 and B1. White's B1 would take C1 back: the board after B2 again, but this time with Black to move.
# C1 took two, so the simple rule bans nothing; positional superko forbids B1; situational superko allows it.
SEND_TWO = """
4 . . . .
3 X X . .
2 X X O .
1 . . X O
  A B C D"""
SEND_TWO_MOVES = "A2 B1 B3 C2 A3 D1 B2 A1 C1"
CASES += cases("send two", SEND_TWO, SEND_TWO_MOVES, legal="A1 B1 C3", illegal="C1", rules=BUT_POSITIONAL)
CASES += cases("send two", SEND_TWO, SEND_TWO_MOVES, legal="A1 C3", illegal="B1 C1", rules=("positional",))

# White to move, one lap later: White returned one with B1 and Black passed. Sending two again with A1 would
# repeat the board after the first A1, again with Black to move: here situational superko ends the cycle.
SEND_TWO_AGAIN = """
4 . . . .
3 X X . .
2 X X O .
1 . O . O
  A B C D"""
SEND_AGAIN_MOVES = f"{SEND_TWO_MOVES} B1 pass"
CASES += cases("send two again", SEND_TWO_AGAIN, SEND_AGAIN_MOVES, legal="A1 C1 C3", rules=("simple",))
CASES += cases("send two again", SEND_TWO_AGAIN, SEND_AGAIN_MOVES, legal="C1 C3", illegal="A1", rules=("situational",))

# --- Suicide ------------------------------------------------------------------------------------------------

# White to move. Black surrounds every empty point, and the suicide of one is forbidden under either setting:
# White has nothing but the pass.
PONNUKI = """
3 . X .
2 X . X
1 . X .
  A B C"""
CASES += cases("suicide of one", PONNUKI, "B3 pass A2 pass C2 pass B1", illegal="A1 A3 B2 C1 C3", score=9)

# White to move. C3 makes a chain of two without a liberty; A4 and D4 would be one stone each. Where C3 is
# allowed superko does not mind: B3 came second in the game, so the emptied hole never was.
HOLE = """
4 . X X .
3 X O . X
2 . X X .
1 . . . .
  A B C D"""
HOLE_MOVES = "B4 B3 C4 pass A3 pass D3 pass B2 pass C2"
CASES += cases("suicide of two", HOLE, HOLE_MOVES, legal="A2 D2 B1", illegal="C3 A4 D4", suicide=(False,))
CASES += cases("suicide of two", HOLE, HOLE_MOVES, legal="C3 A2 D2 B1", illegal="A4 D4", suicide=(True,))

# Black to move: both white stones are gone, and all that is empty reaches only Black.
HOLE_EMPTIED = """
4 . X X .
3 X . . X
2 . X X .
1 . . . .
  A B C D"""
EMPTIED_MOVES = f"{HOLE_MOVES} C3"
CASES += cases("after suicide", HOLE_EMPTIED, EMPTIED_MOVES, legal="B3 C3 A4", score=16, suicide=(True,))

# White to move in HOLE, but B3 came last: C3 would restore the board before B3. It stood with White to move
# and would now stand with Black to move, so positional superko forbids it and situational superko does not.
LATE_MOVES = "B4 pass C4 pass A3 pass D3 pass B2 pass C2 B3 pass"
CASES += cases("suicide repeats", HOLE, LATE_MOVES, "C3 A2", "A4", rules=BUT_POSITIONAL, suicide=(True,))
CASES += cases("suicide repeats", HOLE, LATE_MOVES, "A2", "C3 A4", rules=("positional",), suicide=(True,))

# Black to move. C3 is the suicide of the whole board. The empty board of the start counts as an earlier
# position: it stood with Black to move, and would now stand with White to move.
ALL_BLACK = """
3 X X .
2 X X X
1 X X X
  A B C"""
BLACK_FILLS = "A1 pass A2 pass A3 pass B1 pass B2 pass B3 pass C1 pass C2 pass"
CASES += cases("Black fills all", ALL_BLACK, BLACK_FILLS, illegal="C3", score=9, suicide=(False,))
CASES += cases("Black fills all", ALL_BLACK, BLACK_FILLS, legal="C3", rules=BUT_POSITIONAL, suicide=(True,))
CASES += cases("Black fills all", ALL_BLACK, BLACK_FILLS, illegal="C3", rules=("positional",), suicide=(True,))

# White to move. The same in the other colour, but now the empty board would stand with Black to move, as it
# did at the start: situational superko forbids it too.
ALL_WHITE = """
3 O O .
2 O O O
1 O O O
  A B C"""
WHITE_FILLS = "pass A1 pass A2 pass A3 pass B1 pass B2 pass B3 pass C1 pass C2 pass"
CASES += cases("White fills all", ALL_WHITE, WHITE_FILLS, legal="C3", rules=("simple",), suicide=(True,))
CASES += cases("White fills all", ALL_WHITE, WHITE_FILLS, illegal="C3", rules=SUPERKO, score=-9)

# --- Captures that look like suicide ------------------------------------------------------------------------

# Black to move. A1 has only white neighbours, but it is the last liberty of both: they come off first.
CORNER = """
4 . . . .
3 X . . .
2 O X . .
1 . O X .
  A B C D"""
CASES += cases("corner capture", CORNER, "A3 A2 B2 B1 C1 pass", legal="A1 A4", illegal="A2 B1")

# White to move, one move earlier. A1 would join A2 and B1 into three stones without a liberty.
CASES += cases("corner fill", CORNER, "A3 A2 B2 B1 C1", legal="A4 B3", illegal="A1", suicide=(False,))
CASES += cases("corner fill", CORNER, "A3 A2 B2 B1 C1", legal="A1 A4 B3", suicide=(True,))

# White to move, both stones gone. No ko, since two were taken, but A2 and B1 are now suicides of one.
CORNER_TAKEN = """
4 . . . .
3 X . . .
2 . X . .
1 X . X .
  A B C D"""
CORNER_TAKEN_MOVES = "A3 A2 B2 B1 C1 pass A1"
CASES += cases("corner taken", CORNER_TAKEN, CORNER_TAKEN_MOVES, legal="A4 B3 D1", illegal="A1 A2 B1", score=16)

# White to move. Two eyes: either is a suicide of one. Black has 10 stones and 2 eyes, White 6 stones and 18.
TWO_EYES = """
6 . . . . . .
5 . . . . . .
4 . . . . . .
3 O O O O O O
2 X X X X X X
1 . X . X X X
  A B C D E F"""
TWO_EYES_MOVES = "A2 A3 B2 B3 C2 C3 D2 D3 E2 E3 F2 F3 B1 pass D1 pass E1 pass F1"
CASES += cases("two eyes", TWO_EYES, TWO_EYES_MOVES, legal="A4 F6", illegal="A1 C1", score=-12)

# White to move. Black has filled one eye: C1 is the last liberty of his eleven stones and takes them all.
ONE_EYE = """
6 . . . . . .
5 . . . . . .
4 . . . . . .
3 O O O O O O
2 X X X X X X
1 X X . X X X
  A B C D E F"""
CASES += cases("one eye", ONE_EYE, f"{TWO_EYES_MOVES} pass A1", legal="C1 A4", illegal="A1", score=-12)
