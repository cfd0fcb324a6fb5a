"""The noise schedule of DDPM: adds noise, and takes it away again."""

import torch


class NoiseSchedule:
    def __init__(self, steps, device):
        self.steps = steps
        self.betas = torch.linspace(1e-4, 0.02, steps, device=device)
        self.alphas_bar = torch.cumprod(1 - self.betas, dim=0)

    def add_noise(self, x, noise, t):
        a = self.alphas_bar[t][:, None, None, None]
        return a.sqrt() * x + (1 - a).sqrt() * noise

    @torch.no_grad()
    def sample(self, model, shape, num_steps):
        """DDIM without noise, in `num_steps` of the steps."""
        x = torch.randn(shape, device=self.betas.device)
        times = torch.linspace(self.steps - 1, 0, num_steps, device=x.device).long()
        for i, t in enumerate(times):
            a = self.alphas_bar[t]
            a_next = self.alphas_bar[times[i + 1]] if i + 1 < num_steps else torch.ones_like(a)
            predicted = model(x, t.expand(shape[0]))
            x0 = ((x - (1 - a).sqrt() * predicted) / a.sqrt()).clamp(-1, 1)
            x = a_next.sqrt() * x0 + (1 - a_next).sqrt() * predicted
        return x
