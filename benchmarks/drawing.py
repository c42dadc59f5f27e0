"""What the drawings of benchmarks share: colours, round numbers, axes, and the SVG around it all, as text."""
import dataclasses
import math

COLOURS = ["#1b6ca8", "#d1495b", "#3a7d44", "#8d5fd3", "#e09f3e", "#555555"]


def ticks(low, high):
    """Round numbers of an axis, about five."""
    step = 10 ** math.floor(math.log10((high - low) / 4))
    step *= next(factor for factor in (1, 2, 5, 10) if (high - low) / (factor * step) <= 6)
    return [i * step for i in range(math.ceil(low / step), math.floor(high / step) + 1)]


@dataclasses.dataclass(frozen=True)
class Frame:
    """Where the axes of a panel lie, in pixels of the drawing; so are the places that its methods take."""

    left: float
    top: float
    width: float
    height: float

    def title(self, text):
        return f'<text x="{self.left}" y="{self.top - 16}" font-size="13">{text}</text>'

    def row(self, y, label):
        """A thin line across, its label on the left."""
        return f'<path d="M{self.left} {y:.1f}h{self.width}" stroke="#ddd"/><text x="{self.left - 6}" y="{y + 4:.1f}" text-anchor="end">{label}</text>'

    def column(self, x, label):
        """A thin line down, its label below."""
        return (f'<path d="M{x:.1f} {self.top}v{self.height}" stroke="#eee"/>'
                f'<text x="{x:.1f}" y="{self.top + self.height + 15}" text-anchor="middle">{label}</text>')

    def below(self, text):
        """What the columns count."""
        return f'<text x="{self.left + self.width / 2:.1f}" y="{self.top + self.height + 34}" text-anchor="middle">{text}</text>'


def polyline(points, colour, width=2):
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{width}"/>'


def document(width, height, parts):
    """The file."""
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" font-size="11">'
            f'<rect width="100%" height="100%" fill="white"/>{"".join(parts)}</svg>\n')
