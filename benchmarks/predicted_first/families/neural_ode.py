"""A flow whose steps are those of a solver: Runge-Kutta, gradients by the adjoint equation, the trace by random probes."""

import torch
import torch.nn.functional as F
from torch import nn

BATCH, STEPS, WIDTH = 32, 10, 64


class Field(nn.Module):
    def __init__(self):
        super().__init__()
        widths = [3, WIDTH, WIDTH, WIDTH, 3]
        self.layers = nn.ModuleList(nn.Conv2d(a + 1, b, 3, padding=1) for a, b in zip(widths[:-1], widths[1:], strict=True))

    def forward(self, t, x):
        for number, layer in enumerate(self.layers):
            x = layer(torch.cat([x, t.expand(len(x), 1, *x.shape[2:])], 1))
            x = F.softplus(x) if number < len(self.layers) - 1 else x
        return x


class Flow(nn.Module):
    def __init__(self):
        super().__init__()
        self.field, self.probe = Field(), None

    def forward(self, t, state):
        x, _ = state
        with torch.enable_grad():
            x = x.requires_grad_(True)
            dx = self.field(t, x)
            (slope,) = torch.autograd.grad(dx, x, self.probe, create_graph=True)
            trace = (slope * self.probe).flatten(1).sum(1)
        return dx, -trace


def advance(f, t, dt, state):
    def at(k, weight):
        return tuple(s + weight * dt * d for s, d in zip(state, k, strict=True))

    a = f(t, state)
    b = f(t + dt / 3, at(a, 1 / 3))
    c = f(t + 2 * dt / 3, tuple(s + dt * (y - x / 3) for s, x, y in zip(state, a, b, strict=True)))
    d = f(t + dt, tuple(s + dt * (x - y + z) for s, x, y, z in zip(state, a, b, c, strict=True)))
    return tuple(s + dt * (w + 3 * (x + y) + z) / 8 for s, w, x, y, z in zip(state, a, b, c, d, strict=True))


class Solve(torch.autograd.Function):
    @staticmethod
    def forward(ctx, flow, x, log, *parameters):
        ctx.flow, times = flow, torch.linspace(0, 1, STEPS + 1, device=x.device)
        state = (x, log)
        with torch.no_grad():
            for a, b in zip(times[:-1], times[1:], strict=True):
                state = tuple(s.detach() for s in advance(flow, a, b - a, state))
        ctx.save_for_backward(times, *state)
        return state

    @staticmethod
    def backward(ctx, *gradients):
        times, *state = ctx.saved_tensors
        parameters = tuple(ctx.flow.parameters())

        def f(t, augmented):
            values, adjoint = augmented[:2], augmented[2:4]
            with torch.enable_grad():
                values = tuple(v.detach().requires_grad_(True) for v in values)
                out = ctx.flow(t, values)
                found = torch.autograd.grad(out, (*values, *parameters), [-a for a in adjoint], allow_unused=True)
            zeros = [torch.zeros_like(p) if g is None else g for g, p in zip(found, (*values, *parameters), strict=True)]
            return tuple(o.detach() for o in out) + tuple(zeros)

        augmented = (*state, *gradients, *(torch.zeros_like(p) for p in parameters))
        with torch.no_grad():
            for b, a in zip(times.flip(0)[:-1], times.flip(0)[1:], strict=True):
                augmented = advance(f, b, a - b, augmented)
        return None, augmented[2], augmented[3], *augmented[4:]


torch.manual_seed(0)
flow = Flow().cuda()
optimizer = torch.optim.Adam(flow.parameters(), 1e-3)
for _ in range(2):
    x = torch.rand(BATCH, 3, 32, 32).cuda()
    flow.probe = torch.randint(0, 2, x.shape).cuda().float() * 2 - 1
    z, change = Solve.apply(flow, x, torch.zeros(BATCH, device="cuda"), *flow.parameters())
    log = -0.5 * z.square().flatten(1).sum(1) - change
    loss = -log.mean() / (3 * 32 * 32)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("bits", loss.item(), flush=True)
