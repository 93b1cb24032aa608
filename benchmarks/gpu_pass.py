"""Time of one iteration of one view on a CUDA card, against reading X once and plain PyTorch.

Medians over replays of a CUDA graph, between events. Errors are against float64 on part of the rows.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import torch

from manyview.engines.torch.fused import plain_graph, plain_pass
from manyview.engines.torch.triton_pass import fused_pass, graph_product, worthwhile
from manyview.maths import equations as eq

A, BETA = 0.1, 0.01


def milliseconds(task: Callable[[], object], repeats: int = 30) -> float:
    """Median time of a captured task."""
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            task()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        task()
    graph.replay()
    events = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(repeats)]
    for start, stop in events:
        start.record()
        graph.replay()
        stop.record()
    torch.cuda.synchronize()
    return sorted(start.elapsed_time(stop) for start, stop in events)[repeats // 2]


class Problem:
    """A random view whose graph joins every row to the four before and after it."""

    def __init__(self, n: int, m: int, k: int):
        card = {"device": "cuda", "dtype": torch.float32}
        self.X, self.U = torch.rand(n, m, **card), torch.rand(m, k, **card)
        self.V, self.star, self.w = (torch.rand(*s, **card) for s in ((n, k), (n, k), (n,)))
        self.U /= self.U.sum(dim=0)
        steps = torch.tensor([-4, -3, -2, -1, 1, 2, 3, 4], device="cuda")
        near = torch.arange(n, device="cuda")[:, None] + steps
        inside = (near >= 0) & (near < n)
        self.degrees = inside.sum(dim=1, dtype=torch.float32)
        self.indices = near[inside].to(torch.int32)
        ends = inside.sum(dim=1).cumsum(0).to(torch.int32)
        self.indptr = torch.cat([ends.new_zeros(1), ends])
        self.data = torch.ones(len(self.indices), **card)
        parts = (self.indptr, self.indices, self.data)
        self.graph = torch.sparse_csr_tensor(*parts, size=(n, n))
        self.curvature = 2 * self.degrees[:, None]
        self.negative, self.new = torch.empty_like(self.V), torch.empty_like(self.V)

    def graph_step(self, fused: bool) -> torch.Tensor:
        if fused:
            csr = (self.indptr, self.indices, self.data, self.degrees)
            return graph_product(*csr, self.V, self.negative)
        return plain_graph(self.graph, self.degrees, self.V, self.negative)

    def pass_(self, fused: bool, solver: str = "multiplicative", precision: str = "tf32x3"):
        U = self.U
        given = (U.T @ U, U.sum(dim=0), self.star, self.w, self.w, A, BETA, self.negative)
        term = (self.degrees[:, None], self.curvature)
        how = {"times_V": True, "solver": solver, "out": self.new}
        if fused:
            how["precision"] = precision
        run = fused_pass if fused else plain_pass
        return run(self.X, U, self.V, *given, *term, **how)

    def iteration(self, fused: bool, solver: str = "multiplicative", precision: str = "tf32x3"):
        self.graph_step(fused)
        new, sums = self.pass_(fused, solver, precision)
        U = self.U.to(sums.P.dtype)
        top, bottom = eq.split_U(U, sums, A)
        return new, (U * (top / bottom)).to(self.U.dtype)

    def error(self, precision: str, rows: int = 100_000) -> tuple[float, float]:
        """Of the new V and of P, on the first rows."""
        part = Problem.__new__(Problem)
        n = min(rows, len(self.X))
        for name, value in vars(self).items():
            short = name in ("X", "V", "star", "w", "degrees", "curvature", "negative", "new")
            setattr(part, name, value[:n].contiguous() if short else value)
        new, sums = part.pass_(True, precision=precision)
        for name, value in vars(part).items():
            if isinstance(value, torch.Tensor) and name != "graph":
                setattr(part, name, value.double())
        right, _ = part.pass_(False)
        P = part.X.T @ (part.w[:, None] * new.double())
        return tuple(float((x - y).norm() / y.norm()) for x, y in ((new, right), (sums.P, P)))


def table(n: int, m: int, k: int, hals: bool) -> None:
    problem = Problem(n, m, k)
    read = milliseconds(lambda: problem.X.sum())
    chosen = worthwhile(n, m, k, problem.X.dtype, problem.X.device)
    print(f"\nN={n:,} M={m} K={k}: worthwhile={chosen}")

    def line(name: str, task: Callable[[], object], note: str = "") -> None:
        time = milliseconds(task)
        print(f"  {name:<42}{time:8.3f} ms {time / read:6.2f} × reading X {note}", flush=True)

    line("reading X once", lambda: problem.X.sum())
    line("plain graph product", lambda: problem.graph_step(False))
    line("plain iteration (float32 FMA)", lambda: problem.iteration(False))
    line("fused graph product", lambda: problem.graph_step(True))
    for precision in ("tf32x3", "tf32"):
        errors = "errors V {:.1e} P {:.1e}".format(*problem.error(precision))
        line(f"pass, {precision}", lambda p=precision: problem.pass_(True, precision=p), errors)
        line(f"iteration, {precision}", lambda p=precision: problem.iteration(True, precision=p))
    if hals:
        line("plain pass, hals", lambda: problem.pass_(False, "hals"))
        line("pass, hals, tf32x3", lambda: problem.pass_(True, "hals"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shapes", default="1000000x1000x20", help="NxMxK, with commas between")
    parser.add_argument("--hals", action="store_true", help="also time the steps of HALS")
    args = parser.parse_args()
    print(torch.cuda.get_device_name(), "torch", torch.__version__)
    for shape in args.shapes.split(","):
        table(*(int(side) for side in shape.split("x")), args.hals)
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
