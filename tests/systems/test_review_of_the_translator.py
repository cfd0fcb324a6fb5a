"""WHEN `peaksight read` gets figures of the translator's review, THEN it names those that cannot be true together."""

import io

from peaksight.postmortem import read_log

REVIEW = """# Memory of the translator

4 GPUs of 80 GB. At batch 4 each has:

- Mistral-7B (fp16): 14 GB
- Llama-3.1-8B (fp16): 16 GB
- Bridge (trainable): 2 GB
- Activations (batch=4): 30 GB
- Decode supervision (batch=4): 15 GB
- Total: 77 GB
- With batch=2: 50 GB

Training is 2000 steps, with decode supervision every 100 steps, but not in the warm-up of 200: 2000 / 100 = 20 times.
Leaving out the warm-up saves about 800 decode passes in steps 0-200.
"""


def test_figures_that_cannot_be_true_together():
    """54.5 GB and not 50, 17 times and not 20, 3 passes on each of 4 cards and not 800; the total adds up."""
    checks = read_log(io.BytesIO(REVIEW.encode()), "review.md").claim_checks
    wrong = [check.text for check in checks if not check.holds]

    assert len(wrong) == 3
    assert "54.50 GB; the text says 50 GB" in wrong[0]
    assert "17 times (steps 300 to 1900); the text says 20" in wrong[1]
    assert "3 times in steps 0 to 200, 12 on 4 GPUs; the text says 800" in wrong[2]
    assert ("total", True) in [(check.name, check.holds) for check in checks]
