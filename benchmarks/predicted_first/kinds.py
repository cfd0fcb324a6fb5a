"""Twelve kinds of models, each trained for three steps: point clouds, recurrent networks, encoders, graphs, speech, diffusion, ..."""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--task", required=True)
parser.add_argument("--steps", type=int, default=3)
args = parser.parse_args()
device = torch.device("cuda")
torch.manual_seed(0)


def gather_points(points, index):
    """(B, N, C) and (B, S, K) -> (B, S, K, C)"""
    b, s, k = index.shape
    return points.gather(1, index.reshape(b, s * k, 1).expand(-1, -1, points.shape[-1])).view(b, s, k, -1)


def farthest_points(xyz, n):
    b, total, _ = xyz.shape
    picked = torch.zeros(b, n, dtype=torch.long, device=xyz.device)
    distance = torch.full((b, total), 1e10, device=xyz.device)
    last = torch.zeros(b, dtype=torch.long, device=xyz.device)
    for i in range(n):
        picked[:, i] = last
        centre = xyz[torch.arange(b, device=xyz.device), last][:, None]
        distance = torch.minimum(distance, ((xyz - centre) ** 2).sum(-1))
        last = distance.argmax(-1)
    return picked


class SetAbstraction(nn.Module):
    def __init__(self, n, k, cin, widths):
        super().__init__()
        self.n, self.k = n, k
        layers = []
        for w in widths:
            layers += [nn.Conv2d(cin, w, 1), nn.BatchNorm2d(w), nn.ReLU()]
            cin = w
        self.mlp = nn.Sequential(*layers)

    def forward(self, xyz, feats):
        centres = gather_points(xyz, farthest_points(xyz, self.n)[..., None])[:, :, 0]
        near = torch.cdist(centres, xyz).topk(self.k, largest=False)[1]
        local = gather_points(xyz, near) - centres[:, :, None]
        if feats is not None:
            local = torch.cat([local, gather_points(feats, near)], -1)
        return centres, self.mlp(local.permute(0, 3, 1, 2)).max(-1)[0].transpose(1, 2)


class PointNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = SetAbstraction(256, 32, 3, (64, 64, 128))
        self.b = SetAbstraction(64, 64, 131, (128, 128, 256))
        self.head = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Dropout(0.4), nn.Linear(256, 40))

    def forward(self, xyz):
        xyz, feats = self.a(xyz, None)
        _, feats = self.b(xyz, feats)
        return self.head(feats.max(1)[0])


class Seq2Seq(nn.Module):
    """A bidirectional GRU encoder over packed sequences, and a decoder of LSTM cells with attention."""
    def __init__(self, vocab=8000, dim=512):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim, padding_idx=0)
        self.enc = nn.GRU(dim, dim, 2, batch_first=True, bidirectional=True, dropout=0.2)
        self.cell = nn.LSTMCell(dim + 2 * dim, dim)
        self.query = nn.Linear(dim, 2 * dim, bias=False)
        self.out = nn.Linear(dim, vocab)

    def forward(self, src, lengths, tgt):
        packed = nn.utils.rnn.pack_padded_sequence(self.emb(src), lengths, batch_first=True, enforce_sorted=False)
        memory, _ = nn.utils.rnn.pad_packed_sequence(self.enc(packed)[0], batch_first=True)
        h = c = memory.new_zeros(src.shape[0], 512)
        logits = []
        for t in range(tgt.shape[1]):
            scores = torch.bmm(memory, self.query(h)[..., None])[..., 0]
            context = torch.bmm(scores.softmax(-1)[:, None], memory)[:, 0]
            h, c = self.cell(torch.cat([self.emb(tgt[:, t]), context], -1), (h, c))
            logits.append(self.out(h))
        return torch.stack(logits, 1)


class LanguageModel(nn.Module):
    def __init__(self, vocab=30000, dim=768):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.rnn = nn.LSTM(dim, dim, 2, dropout=0.3)
        self.drop = nn.Dropout(0.3)
        self.out = nn.Linear(dim, vocab)
        self.out.weight = self.emb.weight

    def forward(self, x, state=None):
        y, state = self.rnn(self.drop(self.emb(x)), state)
        return self.out(self.drop(y)), state


class Encoder(nn.Module):
    def __init__(self, vocab=20000, dim=512, layers=6, norm_first=False):
        super().__init__()
        self.emb, self.pos = nn.Embedding(vocab, dim), nn.Parameter(torch.zeros(1, 256, dim))
        layer = nn.TransformerEncoderLayer(dim, 8, 2048, batch_first=True, activation="gelu", norm_first=norm_first)
        self.enc = nn.TransformerEncoder(layer, layers, enable_nested_tensor=not norm_first)
        self.out = nn.Linear(dim, vocab)

    def forward(self, x, padding=None):
        return self.out(self.enc(self.emb(x) + self.pos, src_key_padding_mask=padding))


class GAT(nn.Module):
    def __init__(self, dim=64, heads=4):
        super().__init__()
        self.heads, self.dim = heads, dim
        self.lin = nn.ModuleList([nn.Linear(100, heads * dim), nn.Linear(heads * dim, heads * dim)])
        self.att = nn.ParameterList([nn.Parameter(torch.randn(2, heads, dim) * 0.1) for _ in range(2)])
        self.out = nn.Linear(heads * dim, 47)

    def forward(self, x, src, dst):
        for lin, att in zip(self.lin, self.att):
            h = lin(x).view(-1, self.heads, self.dim)
            e = F.leaky_relu((h * att[0]).sum(-1)[src] + (h * att[1]).sum(-1)[dst], 0.2)
            top = e.new_full((h.shape[0], self.heads), -1e9).scatter_reduce(0, dst[:, None].expand_as(e), e, "amax")
            w = (e - top[dst]).exp()
            norm = torch.zeros_like(top).index_add(0, dst, w)
            w = w / norm[dst]
            x = F.elu(torch.zeros_like(h).index_add(0, dst, h[src] * w[..., None]).flatten(1))
        return self.out(x)


class ConformerBlock(nn.Module):
    def __init__(self, dim=256):
        super().__init__()
        self.ff = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, 4 * dim), nn.SiLU(), nn.Dropout(0.1), nn.Linear(4 * dim, dim))
        self.norm, self.att = nn.LayerNorm(dim), nn.MultiheadAttention(dim, 4, dropout=0.1, batch_first=True)
        self.cnorm = nn.LayerNorm(dim)
        self.conv = nn.Sequential(nn.Conv1d(dim, 2 * dim, 1), nn.GLU(1), nn.Conv1d(dim, dim, 31, padding=15, groups=dim), nn.BatchNorm1d(dim), nn.SiLU(), nn.Conv1d(dim, dim, 1))
        self.last = nn.LayerNorm(dim)

    def forward(self, x):
        x = x + 0.5 * self.ff(x)
        y = self.norm(x)
        x = x + self.att(y, y, y, need_weights=False)[0]
        x = x + self.conv(self.cnorm(x).transpose(1, 2)).transpose(1, 2)
        return self.last(x)


class Speech(nn.Module):
    def __init__(self):
        super().__init__()
        self.sub = nn.Sequential(nn.Conv2d(1, 64, 3, 2), nn.ReLU(), nn.Conv2d(64, 64, 3, 2), nn.ReLU())
        self.proj = nn.Linear(64 * 19, 256)
        self.blocks = nn.ModuleList(ConformerBlock() for _ in range(6))
        self.out = nn.Linear(256, 1000)

    def forward(self, x):
        x = self.sub(x[:, None]).transpose(1, 2).flatten(2)
        x = self.proj(x)
        for b in self.blocks:
            x = b(x)
        return self.out(x).log_softmax(-1)


class ResBlock(nn.Module):
    def __init__(self, cin, cout, attend=False):
        super().__init__()
        self.a = nn.Sequential(nn.GroupNorm(32, cin), nn.SiLU(), nn.Conv2d(cin, cout, 3, padding=1))
        self.b = nn.Sequential(nn.GroupNorm(32, cout), nn.SiLU(), nn.Dropout(0.1), nn.Conv2d(cout, cout, 3, padding=1))
        self.skip = nn.Conv2d(cin, cout, 1) if cin != cout else nn.Identity()
        self.t = nn.Linear(256, cout)
        self.qkv, self.norm, self.proj = (nn.Conv1d(cout, 3 * cout, 1), nn.GroupNorm(32, cout), nn.Conv1d(cout, cout, 1)) if attend else (None,) * 3

    def forward(self, x, t):
        y = self.skip(x) + self.b(self.a(x) + self.t(t)[:, :, None, None])
        if self.qkv is not None:
            q, k, v = self.qkv(self.norm(y).flatten(2)).chunk(3, 1)
            w = torch.einsum("bci,bcj->bij", q * q.shape[1] ** -0.5, k).softmax(-1)
            y = y + self.proj(torch.einsum("bij,bcj->bci", w, v)).view_as(y)
        return y


class Diffusion(nn.Module):
    def __init__(self, ch=128):
        super().__init__()
        self.inp = nn.Conv2d(3, ch, 3, padding=1)
        self.d1, self.d2, self.d3 = ResBlock(ch, ch), ResBlock(ch, 2 * ch), ResBlock(2 * ch, 2 * ch, True)
        self.u3, self.u2, self.u1 = ResBlock(2 * ch, 2 * ch, True), ResBlock(4 * ch, ch), ResBlock(2 * ch, ch)
        self.out = nn.Sequential(nn.GroupNorm(32, ch), nn.SiLU(), nn.Conv2d(ch, 3, 3, padding=1))

    def forward(self, x, t):
        a = self.d1(self.inp(x), t)
        b = self.d2(F.avg_pool2d(a, 2), t)
        c = self.d3(F.avg_pool2d(b, 2), t)
        c = F.interpolate(self.u3(c, t), scale_factor=2, mode="nearest")
        b = F.interpolate(self.u2(torch.cat([c, b], 1), t), scale_factor=2, mode="nearest")
        return self.out(self.u1(torch.cat([b, a], 1), t))


class SlowAttention(nn.Module):
    """Attention written by hand, long rows: softmax decides the peak."""
    def __init__(self, dim=256, heads=8):
        super().__init__()
        self.heads = heads
        self.blocks = nn.ModuleList(nn.ModuleDict({"n": nn.LayerNorm(dim), "qkv": nn.Linear(dim, 3 * dim), "o": nn.Linear(dim, dim), "m": nn.LayerNorm(dim), "f": nn.Linear(dim, 4 * dim), "g": nn.Linear(4 * dim, dim)}) for _ in range(3))
        self.out = nn.Linear(dim, 10)

    def forward(self, x):
        for b in self.blocks:
            q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in b["qkv"](b["n"](x)).chunk(3, -1))
            w = F.dropout(((q @ k.transpose(-1, -2)) / 5.6).softmax(-1), 0.1, self.training)
            x = x + b["o"]((w @ v).transpose(1, 2).flatten(2))
            x = x + b["g"](F.gelu(b["f"](b["m"](x))))
        return self.out(x.mean(1))


def train(model, batch, loss_of, dtype=None, scaler=None, opt=None, clip=None):
    model = model.to(device).train()
    opt = opt or torch.optim.AdamW(model.parameters(), lr=1e-4)
    for step in range(args.steps):
        data = [t.to(device) if torch.is_tensor(t) and t.dim() > 0 else t for t in batch()]
        with torch.autocast("cuda", dtype or torch.float16, enabled=dtype is not None):
            loss = loss_of(model, *data)
        if scaler:
            scaler.scale(loss).backward()
            scaler.unscale_(opt)
        else:
            loss.backward()
        if clip:
            nn.utils.clip_grad_norm_(model.parameters(), clip)
        scaler.step(opt) if scaler else opt.step()
        if scaler:
            scaler.update()
        opt.zero_grad()
        print("loss", loss.item(), flush=True)
    return model


if args.task == "points":
    train(PointNet(), lambda: (torch.rand(32, 2048, 3), torch.randint(0, 40, (32,))), lambda m, x, y: F.cross_entropy(m(x), y), opt=None)
elif args.task == "seq2seq":
    lengths = torch.linspace(80, 20, 64).long()
    train(Seq2Seq(), lambda: (torch.randint(1, 8000, (64, 80)), torch.randint(1, 8000, (64, 60))), lambda m, s, t: F.cross_entropy(m(s, lengths, t).flatten(0, 1), t.flatten(), ignore_index=0), clip=1.0)
elif args.task == "lstm-lm":
    state = None
    def loss_of(m, x, y):
        global state
        logits, state = m(x, state)
        state = tuple(s.detach() for s in state)
        return F.cross_entropy(logits.flatten(0, 1), y.flatten())
    train(LanguageModel(), lambda: (torch.randint(0, 30000, (70, 64)), torch.randint(0, 30000, (70, 64))), loss_of, torch.bfloat16, clip=0.25)
elif args.task == "encoder-fp16":
    padding = torch.arange(256)[None] >= torch.linspace(256, 100, 32)[:, None]
    m = train(Encoder(), lambda: (torch.randint(0, 20000, (32, 256)), padding, torch.randint(0, 20000, (32, 256))), lambda m, x, p, y: F.cross_entropy(m(x, p).flatten(0, 1), y.flatten()), torch.float16, torch.amp.GradScaler("cuda"))
    m.eval()
    with torch.no_grad(), torch.autocast("cuda", torch.float16):
        print(m(torch.randint(0, 20000, (64, 256), device=device)).float().mean().item())
elif args.task == "encoder-half":
    m = Encoder(norm_first=True).half()
    train(m, lambda: (torch.randint(0, 20000, (32, 256)), torch.randint(0, 20000, (32, 256))), lambda m, x, y: F.cross_entropy(m(x).flatten(0, 1).float(), y.flatten()), opt=torch.optim.SGD(m.parameters(), 0.01, momentum=0.9))
elif args.task == "gat":
    n, e = 50_000, 800_000
    train(GAT(), lambda: (torch.randn(n, 100), torch.randint(0, n, (e,)), torch.randint(0, n, (e,)), torch.randint(0, 47, (n,))), lambda m, x, s, d, y: F.cross_entropy(m(x, s, d), y))
elif args.task == "speech":
    train(Speech(), lambda: (torch.randn(16, 800, 80), torch.randint(1, 1000, (16, 60)), torch.full((16,), 199), torch.full((16,), 60)), lambda m, x, y, i, t: F.ctc_loss(m(x).transpose(0, 1), y, i, t), torch.bfloat16)
elif args.task == "diffusion":
    train(Diffusion(), lambda: (torch.randn(16, 3, 64, 64), torch.randn(16, 256), torch.randn(16, 3, 64, 64)), lambda m, x, t, y: F.mse_loss(m(x, t), y), torch.bfloat16, clip=1.0)
elif args.task == "slow-attention":
    train(SlowAttention(), lambda: (torch.randn(8, 1024, 256), torch.randint(0, 10, (8,))), lambda m, x, y: F.cross_entropy(m(x), y))
elif args.task == "translate":
    emb, out = nn.Embedding(16000, 512), nn.Linear(512, 16000)
    tr = nn.Transformer(512, 8, 4, 4, 2048, batch_first=True)
    m = nn.ModuleDict({"e": emb, "t": tr, "o": out})
    causal = nn.Transformer.generate_square_subsequent_mask(96)
    train(m, lambda: (torch.randint(0, 16000, (48, 128)), torch.randint(0, 16000, (48, 96)), causal), lambda m, s, t, c: F.cross_entropy(m["o"](m["t"](m["e"](s), m["e"](t), tgt_mask=c, tgt_is_causal=True)).flatten(0, 1), t.flatten(), label_smoothing=0.1), opt=torch.optim.Adam(m.parameters(), 1e-4))
elif args.task == "segment":
    import torchvision
    m = torchvision.models.segmentation.deeplabv3_resnet50(weights=None, weights_backbone=None, num_classes=21, aux_loss=True)
    train(m, lambda: (torch.rand(6, 3, 384, 384), torch.randint(0, 21, (6, 384, 384))), lambda m, x, y: sum(F.cross_entropy(o, y, ignore_index=20) for o in m(x).values()), torch.float16, torch.amp.GradScaler("cuda"), torch.optim.SGD(m.parameters(), 0.01, momentum=0.9, weight_decay=1e-4))
elif args.task == "t5":
    from transformers import T5Config, T5ForConditionalGeneration
    m = T5ForConditionalGeneration(T5Config(d_model=512, d_kv=64, d_ff=1024, num_layers=8, num_heads=6, feed_forward_proj="gated-gelu", tie_word_embeddings=False, decoder_start_token_id=0)).bfloat16()
    train(m, lambda: (torch.randint(1, 32000, (16, 384)), torch.randint(1, 32000, (16, 128))), lambda m, x, y: m(input_ids=x, attention_mask=torch.ones_like(x), labels=y).loss, opt=torch.optim.AdamW(m.parameters(), 1e-4, fused=True))
elif args.task == "lora-vit":
    from peft import LoraConfig, get_peft_model
    from transformers import ViTConfig, ViTForImageClassification
    m = get_peft_model(ViTForImageClassification(ViTConfig(num_labels=100)), LoraConfig(r=16, lora_dropout=0.1, target_modules=["query", "value", "q_proj", "v_proj"], modules_to_save=["classifier"]))
    train(m, lambda: (torch.rand(64, 3, 224, 224), torch.randint(0, 100, (64,))), lambda m, x, y: m(pixel_values=x, labels=y).loss, torch.bfloat16)
else:
    raise SystemExit(f"unknown task {args.task}")
