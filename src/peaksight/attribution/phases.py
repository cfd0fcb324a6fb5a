"""The most that was allocated in each phase of a run."""

from peaksight.records import Capture, Phase


def peaks_by_phase(capture: Capture) -> dict[Phase, int]:
    """The highest allocated bytes that an allocation of each phase led to, in the order in which the phases began.

    That of the phase of the peak is the peak.
    """
    changes = [(a.born, a.allocated_bytes, a.phase) for a in capture.allocations]
    changes += [(a.died, -a.allocated_bytes, a.phase) for a in capture.allocations if a.died is not None]
    peaks: dict[Phase, int] = {}
    allocated_bytes = 0
    for _, change_bytes, phase in sorted(changes, key=lambda change: change[0]):
        allocated_bytes += change_bytes
        if change_bytes > 0:
            peaks[phase] = max(peaks.get(phase, 0), allocated_bytes)
    return peaks
