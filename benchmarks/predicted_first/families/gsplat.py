import torch, torch.nn as nn, torch.nn.functional as F

N, H, W, T = 20000, 128, 128, 16
dev = "cuda"
P = nn.ParameterDict(
    {
        "xyz": nn.Parameter(torch.randn(N, 3, device=dev)),
        "scale": nn.Parameter(torch.full((N, 3), -3.0, device=dev)),
        "rot": nn.Parameter(F.normalize(torch.randn(N, 4, device=dev), dim=-1)),
        "op": nn.Parameter(torch.zeros(N, 1, device=dev)),
        "rgb": nn.Parameter(torch.rand(N, 3, device=dev)),
    }
)
opt = torch.optim.Adam([{"params": [v], "lr": 1e-3, "name": k} for k, v in P.items()], eps=1e-15)


def render(P, K=256):
    q = F.normalize(P["rot"], dim=-1)
    w, x, y, z = q.unbind(-1)
    R = torch.stack(
        [
            1 - 2 * (y * y + z * z),
            2 * (x * y - w * z),
            2 * (x * z + w * y),
            2 * (x * y + w * z),
            1 - 2 * (x * x + z * z),
            2 * (y * z - w * x),
            2 * (x * z - w * y),
            2 * (y * z + w * x),
            1 - 2 * (x * x + y * y),
        ],
        -1,
    ).view(-1, 3, 3)
    M = R * P["scale"].exp()[:, None]
    S = (M @ M.transpose(1, 2))[:, :2, :2] + 1e-4 * torch.eye(2, device=dev)
    inv = torch.inverse(S)
    uv = (P["xyz"][:, :2] + 1) * 0.5 * torch.tensor([W, H], device=dev)
    order = P["xyz"][:, 2].argsort()
    img = []
    ys, xs = torch.meshgrid(torch.arange(T, device=dev), torch.arange(T, device=dev), indexing="ij")
    px0 = torch.stack([xs, ys], -1).view(-1, 2).float()
    for ty in range(0, H, 32):
        for tx in range(0, W, 32):
            c = torch.tensor([tx + 8.0, ty + 8.0], device=dev)
            d = (uv[order] - c).abs().amax(-1)
            idx = order[torch.topk(-d, K).indices]
            px = px0 + torch.tensor([tx, ty], device=dev)
            dl = px[:, None] - uv[idx][None]
            e = -0.5 * torch.einsum("pki,kij,pkj->pk", dl / W, inv[idx], dl / W)
            a = (torch.sigmoid(P["op"][idx, 0]) * e.exp()).clamp(max=0.99)
            t = torch.cumprod(torch.cat([torch.ones_like(a[:, :1]), 1 - a[:, :-1]], 1), 1)
            img.append((a * t) @ torch.sigmoid(P["rgb"][idx]))
    return torch.stack(img)


for it in range(12):
    out = render(P)
    gt = torch.rand_like(out)
    l = 0.8 * F.l1_loss(out, gt) + 0.2 * F.mse_loss(out, gt)
    l.backward()
    g = P["xyz"].grad.norm(dim=-1)
    opt.step()
    opt.zero_grad(set_to_none=True)
    if it == 5:
        with torch.no_grad():
            sel = torch.topk(g, N // 10).indices
            for grp in opt.param_groups:
                k = grp["name"]
                old = grp["params"][0]
                st = opt.state.pop(old)
                new = nn.Parameter(
                    torch.cat([old, old[sel] + (0.01 * torch.randn_like(old[sel]) if k == "xyz" else 0)])
                )
                for s in ("exp_avg", "exp_avg_sq"):
                    st[s] = torch.cat([st[s], torch.zeros_like(old[sel])])
                grp["params"][0] = new
                opt.state[new] = st
                P[k] = new
    print(it, l.item(), P["xyz"].shape[0])
