"""Self-play: a tree search that asks a residual network in batches, a buffer on the card, then steps over samples of it."""

import torch
import torch.nn.functional as F
from torch import nn

GAMES, MOVES, SIMULATIONS, SIDE, WIDTH, PLANES = 128, 12, 16, 19, 128, 17
ACTIONS = SIDE * SIDE + 1


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = (nn.Conv2d(WIDTH, WIDTH, 3, padding=1, bias=False) for _ in range(2))
        self.a, self.b = nn.BatchNorm2d(WIDTH), nn.BatchNorm2d(WIDTH)

    def forward(self, x):
        return F.relu(x + self.b(self.two(F.relu(self.a(self.one(x))))))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.start = nn.Sequential(nn.Conv2d(PLANES, WIDTH, 3, padding=1, bias=False), nn.BatchNorm2d(WIDTH), nn.ReLU())
        self.body = nn.Sequential(*(Block() for _ in range(10)))
        self.policy = nn.Sequential(nn.Conv2d(WIDTH, 2, 1), nn.BatchNorm2d(2), nn.ReLU(), nn.Flatten(), nn.Linear(2 * SIDE**2, ACTIONS))
        self.value = nn.Sequential(
            nn.Conv2d(WIDTH, 1, 1), nn.BatchNorm2d(1), nn.ReLU(), nn.Flatten(), nn.Linear(SIDE**2, 256), nn.ReLU(), nn.Linear(256, 1), nn.Tanh()
        )

    def forward(self, boards):
        x = self.body(self.start(boards))
        return self.policy(x), self.value(x).squeeze(1)


@torch.inference_mode()
def search(net, boards):
    visits, values = (torch.zeros(len(boards), ACTIONS, device="cuda") for _ in range(2))
    logits, _ = net(boards)
    noise = torch.distributions.Dirichlet(torch.full((ACTIONS,), 0.03, device="cuda")).sample((len(boards),))
    prior = 0.75 * logits.softmax(1) + 0.25 * noise
    for _ in range(SIMULATIONS):
        bound = values / visits.clamp(min=1) + 1.5 * prior * visits.sum(1, keepdim=True).sqrt() / (1 + visits)
        chosen = bound.argmax(1, keepdim=True)
        following = boards.clone()
        following.flatten(2)[:, 0].scatter_(1, chosen.clamp(max=SIDE**2 - 1), 1)
        _, value = net(following)
        visits.scatter_add_(1, chosen, torch.ones_like(chosen, dtype=torch.float))
        values.scatter_add_(1, chosen, -value[:, None])
    return visits / visits.sum(1, keepdim=True)


torch.manual_seed(0)
net = Net().cuda()
optimizer = torch.optim.SGD(net.parameters(), 0.02, momentum=0.9, weight_decay=1e-4)
boards_kept = torch.zeros(GAMES * MOVES, PLANES, SIDE, SIDE, dtype=torch.bool, device="cuda")
policies_kept, results_kept = torch.zeros(GAMES * MOVES, ACTIONS, device="cuda"), torch.zeros(GAMES * MOVES, device="cuda")
for _ in range(2):
    net.eval()
    boards = torch.zeros(GAMES, PLANES, SIDE, SIDE, device="cuda")
    for move in range(MOVES):
        policy = search(net, boards)
        place = slice(move * GAMES, (move + 1) * GAMES)
        boards_kept[place], policies_kept[place] = boards.bool(), policy
        chosen = torch.multinomial(policy, 1)
        boards = boards.roll(1, 1)
        boards.flatten(2)[:, 0].scatter_(1, chosen.clamp(max=SIDE**2 - 1), 1)
    results_kept.copy_(torch.randn(GAMES).sign().repeat(MOVES))
    net.train()
    for _ in range(6):
        rows = torch.randint(0, GAMES * MOVES, (512,), device="cuda")
        logits, value = net(boards_kept[rows].float())
        loss = F.cross_entropy(logits, policies_kept[rows]) + F.mse_loss(value, results_kept[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("loss", loss.item(), flush=True)
