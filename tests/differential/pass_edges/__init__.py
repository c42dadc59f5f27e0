"""Generators of graphs at the edges of the passes over the graph, by families of passes."""
from pass_edges import activations, affine, algebra, attention, constants, identities, layouts, norms, parallel_products, varying, windows

FAMILIES = [module.FAMILY for module in (identities, constants, activations, norms, affine, parallel_products, algebra, attention, windows, layouts, varying)]
