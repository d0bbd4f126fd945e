"""What bug is it? From wrong results to the likely mistake, by recomputing what known bugs give.

``bugs`` lists them, ``replay`` computes what a network with one of them gives, ``signatures`` knows what arrays alone
can tell, and ``likely`` puts the three together.
"""

from numpy_rnn.diagnosis.likely import Diagnosis, Finding, diagnose
from numpy_rnn.diagnosis.replay import Case, replay

__all__ = ["Case", "Diagnosis", "Finding", "diagnose", "replay"]
