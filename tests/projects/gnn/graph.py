"""A random graph with features and labels, and neighbour sampling on the host."""

import torch


class Graph:
    """`edges` is (2, num_edges): sources and targets, sorted by target; `starts` says where a target's edges begin."""

    def __init__(self, num_nodes, degree, features, classes, seed=0):
        g = torch.Generator().manual_seed(seed)
        degrees = torch.randint(1, 2 * degree, (num_nodes,), generator=g)
        targets = torch.arange(num_nodes).repeat_interleave(degrees)
        sources = torch.randint(0, num_nodes, targets.shape, generator=g)
        self.edges = torch.stack([sources, targets])
        self.starts = torch.cat([torch.zeros(1, dtype=torch.long), degrees.cumsum(0)])
        self.x = torch.randn(num_nodes, features, generator=g)
        self.y = torch.randint(0, classes, (num_nodes,), generator=g)

    @property
    def num_nodes(self):
        return len(self.x)


class NeighborLoader:
    """Batches of seeds with up to `fanouts` neighbours a hop: node ids (seeds first) and relabelled edges."""

    def __init__(self, graph, nodes, batch_size, fanouts, shuffle=True):
        self.graph, self.nodes, self.batch_size, self.fanouts = graph, nodes, batch_size, fanouts
        self.shuffle = shuffle

    def __len__(self):
        return -(-len(self.nodes) // self.batch_size)

    def __iter__(self):
        order = self.nodes[torch.randperm(len(self.nodes))] if self.shuffle else self.nodes
        for seeds in order.split(self.batch_size):
            yield self._sample(seeds)

    def _sample(self, seeds):
        frontier, sources, targets = seeds, [], []
        for fanout in self.fanouts:
            picked, into = self._neighbours(frontier, fanout)
            sources.append(picked)
            targets.append(into)
            frontier = picked.unique()
        others = torch.cat(sources).unique()
        others = others[~torch.isin(others, seeds)]
        ids = torch.cat([seeds, others])
        position = torch.empty(self.graph.num_nodes, dtype=torch.long)
        position[ids] = torch.arange(len(ids))
        return ids, position[torch.stack([torch.cat(sources), torch.cat(targets)])], len(seeds)

    def _neighbours(self, nodes, fanout):
        begin, count = self.graph.starts[nodes], self.graph.starts[nodes + 1] - self.graph.starts[nodes]
        pick = begin[:, None] + (torch.rand(len(nodes), fanout) * count[:, None]).long()
        return self.graph.edges[0, pick.flatten()], nodes.repeat_interleave(fanout)
