"""What a run that stops early does not come to: lines of the training loop with device work that were not reached.

The person's files are compiled with probes (`probes`), at each step the frames of the loop tell what code it still has
before it (`training_frames`), and what the names in there stand for tells whether that uses the card (`device_work`).
"""

from peaksight.virtual_gpu.unreached.larger import LargerBatches
from peaksight.virtual_gpu.unreached.last_round import is_last_round, rounds_left
from peaksight.virtual_gpu.unreached.lookout import Lookout

__all__ = ["LargerBatches", "Lookout", "is_last_round", "rounds_left"]
