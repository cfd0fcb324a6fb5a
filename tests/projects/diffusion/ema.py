"""An exponential moving average of a model's weights, on the card."""

import torch


class EMA:
    def __init__(self, parameters, decay=0.999):
        self.decay = decay
        self.shadow = [p.detach().clone() for p in parameters]
        self.stored = None

    @torch.no_grad()
    def step(self, parameters):
        for shadow, p in zip(self.shadow, parameters, strict=True):
            shadow.lerp_(p, 1 - self.decay)

    def store(self, parameters):
        """Keep what the model has, to go back to it after sampling."""
        self.stored = [p.detach().cpu().clone() for p in parameters]

    def copy_to(self, parameters):
        for shadow, p in zip(self.shadow, parameters, strict=True):
            p.data.copy_(shadow)

    def restore(self, parameters):
        for stored, p in zip(self.stored, parameters, strict=True):
            p.data.copy_(stored)
        self.stored = None

    def state_dict(self):
        return {"decay": self.decay, "shadow": self.shadow}

    def load_state_dict(self, state):
        self.decay, self.shadow = state["decay"], state["shadow"]
