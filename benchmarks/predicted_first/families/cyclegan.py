"""CycleGAN: two generators, two patch discriminators, a pool of made pictures that stays on the card, linear decay."""

import itertools
import random

import torch
import torch.nn as nn

BATCH, SIZE, POOL = 4, 256, 50


class ResnetBlock(nn.Module):
    def __init__(self, dim):
        super().__init__()
        block = []
        for last in (False, True):
            block += [nn.ReflectionPad2d(1), nn.Conv2d(dim, dim, kernel_size=3), nn.InstanceNorm2d(dim)]
            block += [] if last else [nn.ReLU(True)]
        self.conv_block = nn.Sequential(*block)

    def forward(self, x):
        return x + self.conv_block(x)


class ResnetGenerator(nn.Module):
    def __init__(self, ngf=64, n_blocks=9):
        super().__init__()
        model = [nn.ReflectionPad2d(3), nn.Conv2d(3, ngf, 7), nn.InstanceNorm2d(ngf), nn.ReLU(True)]
        for i in range(2):
            mult = 2**i
            model += [nn.Conv2d(ngf * mult, ngf * mult * 2, 3, stride=2, padding=1), nn.InstanceNorm2d(ngf * mult * 2)]
            model += [nn.ReLU(True)]
        model += [ResnetBlock(ngf * 4) for _ in range(n_blocks)]
        for i in range(2):
            mult = 2 ** (2 - i)
            model += [nn.ConvTranspose2d(ngf * mult, ngf * mult // 2, 3, stride=2, padding=1, output_padding=1)]
            model += [nn.InstanceNorm2d(ngf * mult // 2), nn.ReLU(True)]
        model += [nn.ReflectionPad2d(3), nn.Conv2d(ngf, 3, kernel_size=7), nn.Tanh()]
        self.model = nn.Sequential(*model)

    def forward(self, x):
        return self.model(x)


class NLayerDiscriminator(nn.Module):
    def __init__(self, ndf=64, n_layers=3):
        super().__init__()
        sequence = [nn.Conv2d(3, ndf, 4, stride=2, padding=1), nn.LeakyReLU(0.2, True)]
        a = 1
        for n in range(1, n_layers + 1):
            b = min(2**n, 8)
            sequence += [nn.Conv2d(ndf * a, ndf * b, 4, stride=2 if n < n_layers else 1, padding=1)]
            sequence += [nn.InstanceNorm2d(ndf * b), nn.LeakyReLU(0.2, True)]
            a = b
        self.model = nn.Sequential(*sequence, nn.Conv2d(ndf * a, 1, 4, stride=1, padding=1))

    def forward(self, x):
        return self.model(x)


class ImagePool:
    def __init__(self, pool_size):
        self.pool_size, self.num_imgs, self.images = pool_size, 0, []

    def query(self, images):
        return_images = []
        for image in images:
            image = torch.unsqueeze(image.data, 0)
            if self.num_imgs < self.pool_size:
                self.num_imgs += 1
                self.images.append(image)
                return_images.append(image)
            elif random.uniform(0, 1) > 0.5:
                random_id = random.randint(0, self.pool_size - 1)
                tmp = self.images[random_id].clone()
                self.images[random_id] = image
                return_images.append(tmp)
            else:
                return_images.append(image)
        return torch.cat(return_images, 0)


def init_weights(m):
    if hasattr(m, "weight") and m.weight is not None and "Conv" in m.__class__.__name__:
        nn.init.normal_(m.weight.data, 0.0, 0.02)
        nn.init.constant_(m.bias.data, 0.0)


class CycleGAN:
    def __init__(self, device, lambda_a=10.0, lambda_b=10.0, lambda_idt=0.5):
        self.device, self.la, self.lb, self.li = device, lambda_a, lambda_b, lambda_idt
        self.net_a, self.net_b = ResnetGenerator().to(device), ResnetGenerator().to(device)
        self.d_a, self.d_b = NLayerDiscriminator().to(device), NLayerDiscriminator().to(device)
        for net in (self.net_a, self.net_b, self.d_a, self.d_b):
            net.apply(init_weights)
        self.pool_a, self.pool_b = ImagePool(POOL), ImagePool(POOL)
        self.idt, self.gan = nn.L1Loss(), nn.MSELoss()
        both = itertools.chain(self.net_a.parameters(), self.net_b.parameters())
        self.opt_g = torch.optim.Adam(both, lr=2e-4, betas=(0.5, 0.999))
        self.opt_d = torch.optim.Adam(
            itertools.chain(self.d_a.parameters(), self.d_b.parameters()), lr=2e-4, betas=(0.5, 0.999)
        )
        decay = lambda epoch: 1.0 - max(0, epoch + 1 - 100) / 101.0
        self.schedulers = [torch.optim.lr_scheduler.LambdaLR(o, lr_lambda=decay) for o in (self.opt_g, self.opt_d)]

    def against(self, prediction, real):
        return self.gan(prediction, torch.tensor(1.0 if real else 0.0, device=self.device).expand_as(prediction))

    def set_requires_grad(self, flag):
        for net in (self.d_a, self.d_b):
            for param in net.parameters():
                param.requires_grad = flag

    def forward(self, a, b):
        self.real_a, self.real_b = a.to(self.device), b.to(self.device)
        self.fake_b = self.net_a(self.real_a)
        self.rec_a = self.net_b(self.fake_b)
        self.fake_a = self.net_b(self.real_b)
        self.rec_b = self.net_a(self.fake_a)

    def backward_d(self, net, real, fake):
        loss = (self.against(net(real), True) + self.against(net(fake.detach()), False)) * 0.5
        loss.backward()
        return loss

    def backward_g(self):
        self.idt_a = self.net_a(self.real_b)
        idt = self.idt(self.idt_a, self.real_b) * self.lb * self.li
        self.idt_b = self.net_b(self.real_a)
        idt = idt + self.idt(self.idt_b, self.real_a) * self.la * self.li
        gan = self.against(self.d_a(self.fake_b), True) + self.against(self.d_b(self.fake_a), True)
        cycle = self.idt(self.rec_a, self.real_a) * self.la + self.idt(self.rec_b, self.real_b) * self.lb
        self.loss_g = gan + cycle + idt
        self.loss_g.backward()

    def optimize(self, a, b):
        self.forward(a, b)
        self.set_requires_grad(False)
        self.opt_g.zero_grad()
        self.backward_g()
        self.opt_g.step()
        self.set_requires_grad(True)
        self.opt_d.zero_grad()
        self.loss_da = self.backward_d(self.d_a, self.real_b, self.pool_b.query(self.fake_b))
        self.loss_db = self.backward_d(self.d_b, self.real_a, self.pool_a.query(self.fake_a))
        self.opt_d.step()


torch.manual_seed(0)
model = CycleGAN(torch.device("cuda"))
for step in range(6):
    model.optimize(torch.rand(BATCH, 3, SIZE, SIZE) * 2 - 1, torch.rand(BATCH, 3, SIZE, SIZE) * 2 - 1)
    losses = {name: round(float(getattr(model, name).detach()), 4) for name in ("loss_g", "loss_da", "loss_db")}
    print(step, losses, flush=True)
for scheduler in model.schedulers:
    scheduler.step()
