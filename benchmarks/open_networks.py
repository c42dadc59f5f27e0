"""Networks with open dimensions for open_models.py, of kinds that packages offer with weights or training code only: a detector of YOLO's kind, a
classifier of clouds of points by their neighbours (DGCNN), bags of identifiers (EmbeddingBag), recommendation by such bags (DLRM), and a speech recognizer
of convolutions and attention (Conformer).

NETWORKS has one entry for each: a function that makes the network and its inputs, {input: (example, {dimension: symbol})}.
"""
import torch


def _conv(a, b, kernel=3, stride=1):
    return torch.nn.Sequential(torch.nn.Conv2d(a, b, kernel, stride, kernel // 2, bias=False), torch.nn.BatchNorm2d(b), torch.nn.SiLU())


class Stage(torch.nn.Module):
    """Half of the channels go through residual blocks, and the outputs of all blocks are concatenated (C2f)."""

    def __init__(self, channels):
        super().__init__()
        half = channels // 2
        self.first, self.last = _conv(channels, channels, 1), _conv(2 * channels, channels, 1)
        self.blocks = torch.nn.ModuleList(torch.nn.Sequential(_conv(half, half), _conv(half, half)) for _ in range(2))

    def forward(self, x):
        parts = list(self.first(x).chunk(2, 1))
        for block in self.blocks:
            parts.append(parts[-1] + block(parts[-1]))
        return self.last(torch.cat(parts, 1))


class Detector(torch.nn.Module):
    """Maps of three strides, from coarse to fine and back, and boxes whose centres are the places of the maps. The sides are multiples of 32."""

    def __init__(self, width=8, classes=5, bins=4):
        super().__init__()
        self.classes, self.bins = classes, bins
        down = lambda a, b: torch.nn.Sequential(_conv(a, b, 3, 2), Stage(b))
        self.stem = torch.nn.Sequential(_conv(3, width, 3, 2), down(width, width), down(width, 2 * width))
        self.middle, self.deep = down(2 * width, 2 * width), down(2 * width, 2 * width)
        self.pool = torch.nn.MaxPool2d(5, 1, 2)
        self.pooled = _conv(8 * width, 2 * width, 1)
        self.joins = torch.nn.ModuleList(torch.nn.Sequential(_conv(4 * width, 2 * width, 1), Stage(2 * width)) for _ in range(3))
        self.again = _conv(2 * width, 2 * width, 3, 2)
        self.heads = torch.nn.ModuleList(torch.nn.Conv2d(2 * width, 4 * bins + classes, 1) for _ in range(3))

    def boxes(self, cells, index):
        batch, _, rows, columns = cells.shape
        y, x = torch.meshgrid(torch.arange(rows) + 0.5, torch.arange(columns) + 0.5, indexing="ij")
        centres = torch.stack((x, y)).flatten(1)
        edges, scores = cells.flatten(2).split((4 * self.bins, self.classes), 1)
        distances = (edges.view(batch, 4, self.bins, -1).softmax(2) * torch.arange(float(self.bins)).view(1, 1, -1, 1)).sum(2)
        low, high = centres - distances[:, :2], centres + distances[:, 2:]
        return torch.cat(((low + high) / 2 * 8 * 2**index, (high - low) * 8 * 2**index, scores.sigmoid()), 1)

    def forward(self, image):
        fine = self.stem(image)
        middle = self.middle(fine)
        pools = [self.deep(middle)]
        for _ in range(3):
            pools.append(self.pool(pools[-1]))
        coarse = self.pooled(torch.cat(pools, 1))
        twice = lambda x: torch.nn.functional.interpolate(x, scale_factor=2, mode="nearest")
        middle = self.joins[0](torch.cat((twice(coarse), middle), 1))
        fine = self.joins[1](torch.cat((twice(middle), fine), 1))
        middle = self.joins[2](torch.cat((self.again(fine), middle), 1))
        return torch.cat([self.boxes(head(x), i) for i, (head, x) in enumerate(zip(self.heads, (fine, middle, coarse)))], 2)


class Neighbours(torch.nn.Module):
    """DGCNN: each point joins the differences from its nearest points, which every layer finds anew."""

    def __init__(self, nearest=4):
        super().__init__()
        self.nearest = nearest
        self.layers = torch.nn.ModuleList(torch.nn.Sequential(torch.nn.Conv2d(2 * a, b, 1), torch.nn.BatchNorm2d(b), torch.nn.LeakyReLU(0.2))
                                          for a, b in ((3, 16), (16, 24)))
        self.top = torch.nn.Linear(2 * 24, 5)

    def features(self, x):
        batch, channels, points = x.shape
        squares = (x**2).sum(1, keepdim=True)
        near = (2 * x.transpose(1, 2) @ x - squares - squares.transpose(1, 2)).topk(self.nearest, -1)[1]
        flat = (near + torch.arange(batch).view(-1, 1, 1) * points).view(-1)
        others = x.transpose(1, 2).reshape(batch * points, channels)[flat].view(batch, points, self.nearest, channels)
        own = x.transpose(1, 2).unsqueeze(2).expand(-1, -1, self.nearest, -1)
        return torch.cat((others - own, own), 3).permute(0, 3, 1, 2)

    def forward(self, cloud):
        for layer in self.layers:
            cloud = layer(self.features(cloud)).amax(-1)
        return self.top(torch.cat((cloud.amax(-1), cloud.mean(-1)), 1))


class Recommender(torch.nn.Module):
    """DLRM: sums of embeddings of bags of identifiers, and the products of each two of them and of a layer of numbers."""

    def __init__(self, width=8, modes=("sum", "mean", "sum")):
        super().__init__()
        rows = len(modes) + 1
        self.bags = torch.nn.ModuleList(torch.nn.EmbeddingBag(100, width, mode=mode) for mode in modes)
        self.numbers = torch.nn.Sequential(torch.nn.Linear(6, width), torch.nn.ReLU())
        self.top = torch.nn.Linear(width + rows * (rows - 1) // 2, 1)
        self.register_buffer("pairs", torch.tril_indices(rows, rows, -1))

    def forward(self, numbers, identifiers):
        dense = self.numbers(numbers)
        rows = torch.stack([dense, *(bag(identifiers[:, i]) for i, bag in enumerate(self.bags))], 1)
        products = (rows @ rows.transpose(1, 2))[:, self.pairs[0], self.pairs[1]]
        return torch.sigmoid(self.top(torch.cat((dense, products), 1)))


class Conformer(torch.nn.Module):
    """A layer of half a feed-forward net, attention, a gated convolution and another half, behind two strides over the frames."""

    def __init__(self, bins=16, width=32):
        super().__init__()
        self.strides = torch.nn.Sequential(torch.nn.Conv2d(1, 8, 3, 2, 1), torch.nn.ReLU(), torch.nn.Conv2d(8, 8, 3, 2, 1), torch.nn.ReLU())
        self.into = torch.nn.Linear(8 * bins // 4, width)
        half = lambda: torch.nn.Sequential(torch.nn.LayerNorm(width), torch.nn.Linear(width, 4 * width), torch.nn.SiLU(), torch.nn.Linear(4 * width, width))
        self.halves = torch.nn.ModuleList((half(), half()))
        self.norm, self.attention = torch.nn.LayerNorm(width), torch.nn.MultiheadAttention(width, 4, batch_first=True)
        self.gate = torch.nn.Sequential(torch.nn.LayerNorm(width), torch.nn.Linear(width, 2 * width), torch.nn.GLU())
        self.depth = torch.nn.Sequential(torch.nn.Conv1d(width, width, 7, padding=3, groups=width), torch.nn.BatchNorm1d(width), torch.nn.SiLU())
        self.top = torch.nn.Linear(width, 20)

    def forward(self, frames):
        x = self.strides(frames.unsqueeze(1))
        x = self.into(x.transpose(1, 2).flatten(2))
        x = x + 0.5 * self.halves[0](x)
        y = self.norm(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        x = x + self.depth(self.gate(x).transpose(1, 2)).transpose(1, 2)
        return self.top(x + 0.5 * self.halves[1](x)).log_softmax(-1)


class Bags(torch.nn.Module):
    """The mean of the embeddings of each text (EmbeddingBag)."""

    def __init__(self):
        super().__init__()
        self.bag, self.top = torch.nn.EmbeddingBag(100, 16, mode="mean"), torch.nn.Linear(16, 4)

    def forward(self, text):
        return self.top(self.bag(text))


NETWORKS = {
    "yolo": lambda: (Detector(), {"images": (torch.randn(2, 3, 96, 64), {0: "batch", 2: "height", 3: "width"})}),
    "dgcnn": lambda: (Neighbours(), {"cloud": (torch.randn(2, 3, 20), {0: "batch", 2: "points"})}),
    "dlrm": lambda: (Recommender(), {"numbers": (torch.randn(3, 6), {0: "batch"}), "identifiers": (torch.randint(0, 100, (3, 3, 5)), {0: "batch"})}),
    "embedding_bag": lambda: (Bags(), {"text": (torch.randint(0, 100, (3, 7)), {0: "batch", 1: "seq"})}),
    "conformer": lambda: (Conformer(), {"frames": (torch.randn(2, 40, 16), {0: "batch", 1: "frames"})}),
}
