"""A transformer over molecules (Graphormer): padded graphs, paths as bias, edges along every path, eigenvectors of Laplacians on the card."""

import torch
import torch.nn as nn
import torch.nn.functional as F

GRAPHS, NODES, HOPS, EDGE_FEATURES = 96, 96, 5, 3
DIM, HEADS, LAYERS, PE = 512, 32, 8, 16


def molecule(n):
    """A random tree with a few rings; distances by Floyd and Warshall, all on the host."""
    adj = torch.zeros(n, n, dtype=torch.bool)
    for i in range(1, n):
        adj[i, max(0, i - 1 - int(torch.randint(0, 3, ())))] = True
    rings = torch.randint(0, n, (n // 6, 2))
    adj[rings[:, 0], rings[:, 1]] = True
    adj = (adj | adj.t()) & ~torch.eye(n, dtype=torch.bool)
    dist = torch.where(adj, 1, 510).fill_diagonal_(0)
    for k in range(n):
        dist = torch.minimum(dist, dist[:, k, None] + dist[None, k])
    return torch.randint(1, 512, (n, 9)), adj, dist, torch.randint(1, 64, (n, n, HOPS, EDGE_FEATURES))


def collate(graphs):
    """Everything is padded to the largest graph; zero is the word for nothing."""
    n = max(len(x) for x, *_ in graphs)
    b = len(graphs)
    x = torch.zeros(b, n, 9, dtype=torch.long)
    attn_bias = torch.zeros(b, n + 1, n + 1)
    spatial = torch.zeros(b, n, n, dtype=torch.long)
    edges = torch.zeros(b, n, n, HOPS, EDGE_FEATURES, dtype=torch.long)
    adj = torch.zeros(b, n, n, dtype=torch.bool)
    for i, (node, a, d, e) in enumerate(graphs):
        k = len(node)
        x[i, :k], adj[i, :k, :k], spatial[i, :k, :k], edges[i, :k, :k] = node, a, d + 1, e
        attn_bias[i, :, k + 1 :] = float("-inf")
        attn_bias[i, 1 : k + 1, 1 : k + 1][d >= 20] = float("-inf")
    return dict(x=x, attn_bias=attn_bias, spatial_pos=spatial, edge_input=edges, adj=adj, y=torch.randn(b))


class GraphAttnBias(nn.Module):
    def __init__(self):
        super().__init__()
        self.edge_encoder = nn.Embedding(64 * EDGE_FEATURES + 1, HEADS, padding_idx=0)
        self.edge_dis_encoder = nn.Embedding(HOPS * HEADS * HEADS, 1)
        self.spatial_pos_encoder = nn.Embedding(512, HEADS, padding_idx=0)
        self.graph_token_virtual_distance = nn.Embedding(1, HEADS)

    def forward(self, batch):
        b, n = batch["x"].shape[:2]
        bias = batch["attn_bias"].clone().unsqueeze(1).repeat(1, HEADS, 1, 1)
        bias[:, :, 1:, 1:] = bias[:, :, 1:, 1:] + self.spatial_pos_encoder(batch["spatial_pos"]).permute(0, 3, 1, 2)
        t = self.graph_token_virtual_distance.weight.view(1, HEADS, 1)
        bias[:, :, 1:, 0] = bias[:, :, 1:, 0] + t
        bias[:, :, 0, :] = bias[:, :, 0, :] + t
        hops = batch["spatial_pos"].clone()
        hops[hops == 0] = 1
        hops = torch.where(hops > 1, hops - 1, hops).clamp(0, HOPS)
        edge = self.edge_encoder(batch["edge_input"]).mean(-2)
        edge = edge.permute(3, 0, 1, 2, 4).reshape(HOPS, -1, HEADS)
        edge = torch.bmm(edge, self.edge_dis_encoder.weight.reshape(-1, HEADS, HEADS)[:HOPS])
        edge = edge.reshape(HOPS, b, n, n, HEADS).permute(1, 2, 3, 0, 4)
        edge = (edge.sum(-2) / hops.float().unsqueeze(-1)).permute(0, 3, 1, 2)
        bias[:, :, 1:, 1:] = bias[:, :, 1:, 1:] + edge
        return bias + batch["attn_bias"].unsqueeze(1)


class EncoderLayer(nn.Module):
    def __init__(self, dropout=0.1):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(DIM), nn.LayerNorm(DIM)
        self.q, self.k, self.v, self.out = (nn.Linear(DIM, DIM) for _ in range(4))
        self.ffn = nn.Sequential(nn.Linear(DIM, DIM), nn.GELU(), nn.Dropout(dropout), nn.Linear(DIM, DIM))
        self.attn_dropout, self.dropout = nn.Dropout(dropout), nn.Dropout(dropout)

    def forward(self, x, bias):
        b, n, _ = x.shape
        y = self.norm1(x)
        q, k, v = (f(y).view(b, n, HEADS, -1).transpose(1, 2) for f in (self.q, self.k, self.v))
        scores = torch.matmul(q * (DIM // HEADS) ** -0.5, k.transpose(2, 3)) + bias
        weights = self.attn_dropout(torch.softmax(scores, dim=3))
        x = x + self.dropout(self.out(weights.matmul(v).transpose(1, 2).contiguous().view(b, n, -1)))
        return x + self.dropout(self.ffn(self.norm2(x)))


class Graphormer(nn.Module):
    def __init__(self):
        super().__init__()
        self.atom_encoder = nn.Embedding(512 * 9 + 1, DIM, padding_idx=0)
        self.degree_encoder = nn.Embedding(64, DIM, padding_idx=0)
        self.lap = nn.Linear(PE, DIM)
        self.graph_token = nn.Embedding(1, DIM)
        self.bias = GraphAttnBias()
        self.layers = nn.ModuleList(EncoderLayer() for _ in range(LAYERS))
        self.norm, self.head = nn.LayerNorm(DIM), nn.Linear(DIM, 1)

    def eigenvectors(self, adj, keep):
        a = adj.float()
        deg = a.sum(-1).clamp(min=1).rsqrt()
        lap = torch.diag_embed(keep.float()) - deg.unsqueeze(-1) * a * deg.unsqueeze(-2)
        with torch.no_grad():
            _, vec = torch.linalg.eigh(lap)
        vec = vec[..., 1 : PE + 1]
        if self.training:
            vec = vec * (2 * torch.randint(0, 2, (len(a), 1, PE), device=a.device) - 1)
        return vec * keep.unsqueeze(-1)

    def forward(self, batch):
        keep = batch["x"][..., 0].ne(0)
        h = self.atom_encoder(batch["x"]).sum(dim=-2) + self.degree_encoder(batch["adj"].sum(-1).clamp(max=63))
        h = h + self.lap(self.eigenvectors(batch["adj"], keep))
        h = torch.cat([self.graph_token.weight.unsqueeze(0).repeat(len(h), 1, 1), h], dim=1)
        bias = self.bias(batch)
        for layer in self.layers:
            h = layer(h, bias)
        return self.head(self.norm(h)[:, 0]).squeeze(-1)


torch.manual_seed(0)
sizes = [NODES - 24, NODES, NODES - 8, NODES - 16]
batches = [collate([molecule(n - i % 20) for i in range(GRAPHS)]) for n in sizes]
model = Graphormer().cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-4, betas=(0.9, 0.999), weight_decay=0.01, foreach=False)
schedule = lambda s: min((s + 1) / 2, (4 - s) / 4)
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, schedule)
for step, batch in enumerate(batches):
    batch = {k: v.cuda() for k, v in batch.items()}
    with torch.autocast("cuda", dtype=torch.bfloat16):
        pred = model(batch)
    loss = F.l1_loss(pred.float(), batch["y"])
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    optimizer.step()
    scheduler.step()
    print(step, tuple(batch["x"].shape), loss.item(), flush=True)
model.eval()
with torch.inference_mode():
    print("MAE", torch.cat([(model(batch) - batch["y"]).abs() for _ in range(2)]).mean().item())
