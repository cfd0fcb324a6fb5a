"""A network that solves a differential equation: second derivatives of its output by autograd, minimised by L-BFGS in float64."""

import torch
from torch import nn

torch.manual_seed(0)
torch.set_default_dtype(torch.float64)
layers = [nn.Linear(2, 256), nn.Tanh()]
for _ in range(6):
    layers += [nn.Linear(256, 256), nn.Tanh()]
model = nn.Sequential(*layers, nn.Linear(256, 1)).cuda()
optimizer = torch.optim.LBFGS(model.parameters(), max_iter=4, history_size=20, line_search_fn="strong_wolfe")
inside, edge = torch.rand(20000, 2).cuda(), torch.rand(2000, 2).cuda()
edge[:, 0] = (edge[:, 0] > 0.5).double()


def derivative(of, by):
    return torch.autograd.grad(of.sum(), by, create_graph=True)[0]


def closure():
    optimizer.zero_grad()
    points = inside.clone().requires_grad_()
    value = model(points)
    first = derivative(value, points)
    second = derivative(first[:, 0], points)[:, 0]
    rest = first[:, 1:] + value * first[:, :1] - 0.01 / torch.pi * second[:, None]
    loss = rest.square().mean() + model(edge).square().mean()
    loss.backward()
    return loss


for _ in range(3):
    loss = optimizer.step(closure)
    print("loss", loss.item(), flush=True)
