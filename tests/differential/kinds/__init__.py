"""Kinds of models beyond graphs of operators: see kind.py. differential_test.py --kinds makes random ones of each."""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # the tests whose makers of nodes are used here
from kinds import control, decided, functions, microsoft, ml, ranges, sequences, small_types

KINDS = [module.KIND for module in (functions, sequences, control, small_types, microsoft, ml, ranges, decided)]
