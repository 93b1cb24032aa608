"""The extension the paper proposes, tried: its weights in a mixture model. The library does not have it.

    python benchmarks/mixture.py [--data DIR [--sets NAME ...] [--seeds 1] [--rows N]] [--simulate K speed]

All views share one membership r of each sample. d_isk ≥ 0 is the deviance per observed feature of sample i
in view s from cluster k (Gaussian with a diagonal covariance, multinomial or Bernoulli; a ridge is added to
the data as noise), divided by its mean for a single cluster: neither width nor unit of a view matters. With
Σ_s α_s = 1 and Σ_s w_is = 1,

    J = Σ_ik r_ik [ log r_ik − log π_k ] + κ/2 Σ_ik r_ik Σ_s ((n α_s)^p + (n w_is)²) (d_isk + δ).

κ is half the mean of the views' effective numbers of features. As in the paper, α weights a view and w a
sample in a view, in closed form: α_s ∝ A_s^(−1/(p−1)) with A_s = Σ_ik r_ik (d_isk + δ), and
w_is ∝ 1/Σ_k r_ik (d_isk + δ). With δ = 0 these are the paper's weights; δ = 1 shrinks them towards equal
ones. Memberships, densities, π, α and w are exact minimizers in turn, so J never rises; every run asserts
it. Missing rows and entries take no part. Several starts (k-means of all views, and the clusters of the sum
of the views' graphs, at once and with κ rising to its value): the lowest J is used. Of views with more than
2000 features it uses the most variable ones.
"""

import argparse
import os
import time
import warnings
from itertools import product
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import scipy.sparse as sp
from scipy.special import logsumexp, xlogy
from sklearn.cluster import KMeans
from sklearn.mixture import GaussianMixture

import manyview as mv
from manyview.labels import matched
from quality import load_set

RIDGE = 0.05
WIDEST = 2000
#: κ as a share of its value, for a start that must not be trapped by its first densities.
RISING = (0.05, 0.1, 0.2, 0.4, 0.7)
SETS = [
    "3sources",
    "liver_toxicity",
    "webkb_texas",
    "webkb_cornell",
    "tcga_laml170",
    "msrcv1_5",
    "rosmap",
]
SETS += [
    "bbcsport",
    "100leaves",
    "proteinfold12",
    "bdgp3_missing_p05",
    "bdgp3",
    "scene15",
    "landuse21",
]
SETS += ["handwritten6", "mnist_hog4", "citeseer", "reuters1200", "acm", "pairedtag_h3k4me3"]


class View:
    """A view as its family of densities wants it, and the deviance of its rows from each cluster."""

    def __init__(self, X, ridge=RIDGE, family=None):
        X = np.asarray(X.toarray() if sp.issparse(X) else X, dtype=float)
        if X.shape[1] > WIDEST:
            X = X[:, np.sort(np.argsort(-np.nanvar(X, axis=0), kind="stable")[:WIDEST])]
        self.seen, self.ridge = ~np.isnan(X), ridge
        X = np.where(self.seen, X, 0.0)
        values = X[self.seen]
        binary = np.isin(values, (0, 1)).all()
        counts = values.min() >= 0 and (values == 0).mean() > 0.5
        self.family = family or ("Bernoulli" if binary else "multinomial" if counts else "Gaussian")
        number = np.maximum(self.seen.sum(axis=0), 1)
        if self.family == "Gaussian":
            mean = X.sum(axis=0) / number
            spread = np.sqrt((self.seen * (X - mean) ** 2).sum(axis=0) / number)
            X = (X - mean) / np.where(spread > 0, spread, 1)
        else:
            if self.family == "multinomial":
                self.seen = self.seen & (X.sum(axis=1, keepdims=True) > 0)
                X = X / np.maximum(X.sum(axis=1, keepdims=True), 1e-12)
            X = (1 - ridge) * X + ridge * X.sum(axis=0) / np.maximum(self.seen.sum(axis=0), 1)
            X = np.clip(X, 1e-9, 1 - 1e-9)
        self.X, self.present = X * self.seen, self.seen.any(axis=1)
        centered = self.X - self.seen * (self.X.sum(axis=0) / number)
        rows, columns = centered.shape
        gram = centered @ centered.T if rows < columns else centered.T @ centered
        #: How many independent features vary as much: (Σλ)²/Σλ² of the covariance.
        self.n_effective = float(np.trace(gram) ** 2 / (gram**2).sum())
        self.seen = self.seen.astype(float)
        self.number = np.maximum(self.seen.sum(axis=1, keepdims=True), 1)
        #: The part of the deviance that no cluster changes.
        self.own = 0.0
        if self.family != "Gaussian":
            self.own = xlogy(self.X, self.X).sum(axis=1, keepdims=True)
        if self.family == "Bernoulli":
            rest = self.seen - self.X
            self.own += xlogy(rest, rest).sum(axis=1, keepdims=True)

    def deviance(self, r):
        """Of all rows from the clusters, whose densities are the best for the weights r of rows."""
        r = r / self.number  # a row's deviance is a mean over its observed features
        total = np.maximum(r.T @ self.seen, 1e-12)
        mean = (r.T @ self.X) / total
        if self.family == "Gaussian":
            var = np.maximum((r.T @ self.X**2) / total - mean**2, 0) + self.ridge
            d = (self.X**2) @ (1 / var).T - 2 * self.X @ (mean / var).T
            d = (
                d + self.seen @ ((mean**2 + self.ridge) / var + np.log(var / self.ridge) - 1).T
            ) / 2
        else:
            mean = np.clip(mean, 1e-12, 1 - 1e-12)
            d = self.own - self.X @ np.log(mean).T
            if self.family == "Bernoulli":
                d -= (self.seen - self.X) @ np.log(1 - mean).T
        return np.maximum(d, 0) / self.number

    @property
    def single(self):
        """The mean deviance of the rows from a single cluster."""
        return float(self.deviance(np.ones((len(self.X), 1)))[self.present].mean())


class Fit:
    """Memberships r, view weights α, sample weights w and the values of J, from memberships r."""

    def __init__(self, views, r, p=5.0, delta=1.0, learn=True, max_iter=200, tol=1e-5, kappa=None):
        n = len(views)
        present = np.column_stack([view.present for view in views])
        single = [view.single for view in views]
        kappa = evidence(views) if kappa is None else kappa
        counts = np.maximum(present.sum(axis=1, keepdims=True), 1)
        alpha, w, history = np.full(n, 1 / n), present / counts, []
        for _ in range(max_iter):
            scale = kappa / 2 * present * ((n * alpha) ** p + (counts * w) ** 2)
            d = [view.deviance(r * scale[:, [s]]) / single[s] for s, view in enumerate(views)]
            own = np.column_stack([(r * part).sum(axis=1) for part in d]) + delta
            if learn:
                alpha = np.maximum((present * own).sum(axis=0), 1e-12) ** (-1 / (p - 1))
                alpha /= alpha.sum()
                w = present / np.maximum(own, 1e-9)
                w /= np.maximum(w.sum(axis=1, keepdims=True), 1e-300)
            scale = kappa / 2 * present * ((n * alpha) ** p + (counts * w) ** 2)
            logs = np.log(r.mean(axis=0) + 1e-300) - sum(scale[:, [s]] * d[s] for s in range(n))
            history.append(delta * scale.sum() - float(logsumexp(logs, axis=1).sum()))
            r = np.exp(logs - logsumexp(logs, axis=1, keepdims=True))
            if len(history) > 1 and history[-2] - history[-1] <= tol * abs(history[-1]):
                break
        steps = np.diff(history)
        assert (steps <= 1e-9 * len(r) * max(kappa, 1)).all(), f"J rose by {steps.max():g}"
        self.r, self.alpha, self.w, self.history, self.kappa = r, alpha, w, history, kappa
        self.labels, self.fit = r.argmax(axis=1), float(history[-1] - delta * scale.sum())

    def criteria(self):
        """BIC and ICL, with as many parameters in each cluster as evidence (2 κ for each view)."""
        K = self.r.shape[1]
        bic = 2 * self.fit + (K - 1 + 2 * K * self.kappa * len(self.alpha)) * np.log(len(self.r))
        return bic, bic - 2 * float(xlogy(self.r, self.r).sum())


def evidence(views):
    return float(np.mean([view.n_effective for view in views])) / 2


def soft(labels, K):
    return np.where(np.arange(K) == np.asarray(labels)[:, None], 0.9, 0) + 0.1 / K


def starts(given, views, K, seed, n_starts=3):
    """Memberships: k-means of all views side by side, and the clusters of the sum of their graphs."""
    blocks = [v.X / np.sqrt(max((v.X.var(axis=0)).sum(), 1e-12)) for v in views]
    kmeans = [KMeans(K, n_init=1, random_state=100 * seed + i) for i in range(n_starts)]
    found = [soft(model.fit_predict(np.hstack(blocks)), K) for model in kmeans]
    graphs = mv.baselines.SumOfGraphs(K, random_state=seed).fit(given)
    return [*found, soft(np.maximum(graphs.labels_, 0), K)]


def best(views, starting, kappa=None, **settings):
    """The fit of the lowest J; the last start also with κ rising to its value."""
    kappa = evidence(views) if kappa is None else kappa
    fits, r = [Fit(views, start, kappa=kappa, **settings) for start in starting], starting[-1]
    for share in RISING:
        r = Fit(views, r, kappa=share * kappa, **settings).r
        r = 0.98 * r + 0.02 / r.shape[1]
    return min([*fits, Fit(views, r, kappa=kappa, **settings)], key=lambda fit: fit.history[-1])


def reliability_gap(y, shares, labels):
    """Mean probability of the labels minus the share of samples in the cluster of their class."""
    right = matched(y, labels, int(max(y.max(), labels.max())) + 1)[labels] == y
    return float(shares.max(axis=1).mean() - right.mean())


def table(data, sets, seeds, most):
    """NMI/ARI of the mixture and the two estimators, and how far its probabilities can be trusted."""
    heads = ["set", "RobustWMNMF", "WMNMF", "mixture", "δ = 0", "without weights"]
    heads += ["from RobustWMNMF", "largest α, δ = 0", "gap of p", "gap of confidence_"]
    print("|", " | ".join(heads), "|\n" + "|---" * len(heads) + "|")
    for name in sets:
        given, y = load_set(data, name)
        chosen = np.sort(np.random.default_rng(0).permutation(len(y))[:most])
        given, y = [X[chosen] for X in given], np.unique(y[chosen], return_inverse=True)[1]
        K, views, rows = int(y.max()) + 1, [View(X) for X in given], []
        for seed in range(seeds):
            robust = mv.RobustWMNMF(K, random_state=seed).fit(given)
            paper = mv.WMNMF(K, scale="minmax", missing="allow", random_state=seed).fit(given)
            labels, starting = np.maximum(robust.labels_, 0), starts(given, views, K, seed)
            whole = best(views, starting)
            plain, papers = (best(views, starting, **of) for of in ({"learn": False}, {"delta": 0}))
            after = Fit(views, soft(labels, K))
            fits = [f.labels for f in (whole, papers, plain, after)]
            found = [mv.metrics.scores(y, of) for of in (labels, paper.labels_, *fits)]
            gaps = reliability_gap(y, whole.r, whole.labels)
            sure = reliability_gap(y, robust.confidence_, labels)
            scores = [s for of in found for s in (of["nmi"], of["ari"])]
            rows.append([*scores, papers.alpha.max(), gaps, sure])
        *scores, alpha, gaps, sure = np.mean(rows, axis=0)
        cells = [f"{nmi:.3f}/{ari:.3f}" for nmi, ari in np.reshape(scores, (-1, 2))]
        print(
            "|",
            " | ".join([name, *cells, f"{alpha:.2f}", f"{gaps:+.3f}", f"{sure:+.3f}"]),
            "|",
            flush=True,
        )


def simulated(kind, K, rng, n=300):
    """Two views of 10 and 30 features of the same K clusters, and the clusters."""
    y, views = rng.integers(K, size=n), []
    for m in (10, 30):
        centers = 4 * rng.normal(size=(K, m)) / m**0.25
        if kind == "counts":
            shares = np.exp(0.4 * centers + rng.normal(size=m))
            views.append(
                np.array([rng.multinomial(20, s / s.sum()) for s in shares[y]]).astype(float)
            )
            continue
        noise = rng.normal(size=(n, m))
        if kind == "correlated":
            noise = (
                noise @ np.linalg.cholesky(0.7 ** np.abs(np.subtract.outer(range(m), range(m)))).T
            )
        if kind == "heavy tails":
            noise = rng.standard_t(3, size=(n, m))
        views.append((0.5 if kind == "overlapping" else 1) * centers[y] + noise)
    if kind == "with a noise view":
        views.append(rng.normal(size=(n, 20)))
    return views, y


def chosen_K(given, K, seed, full):
    """K by BIC and ICL, and the fit at K; ``full``: effective features weigh as in a likelihood."""
    views = [View(X) for X in given]
    kappa = np.mean([v.n_effective * v.single for v in views]) if full else None
    fits = {k: best(views, starts(given, views, k, seed), kappa) for k in range(1, K + 4)}
    scores = {k: fit.criteria() for k, fit in fits.items()}
    return [min(scores, key=lambda k: scores[k][j]) for j in (0, 1)], fits[K]


def simulate_K(seeds=3):
    """K by BIC and ICL where it is known, null data (K = 1) among them, and the probabilities at it."""
    print(
        "| data | K | BIC | ICL | ICL, full evidence | ARI at K | gap of p |\n|---|---|---|---|---|---|---|"
    )
    kinds = [
        "independent",
        "overlapping",
        "correlated",
        "heavy tails",
        "counts",
        "with a noise view",
    ]
    for kind, K in product(kinds, (1, 3, 6)):
        rows, at = [], []
        for seed in range(seeds):
            given, y = simulated(kind, K, np.random.default_rng(seed))
            by, fit = chosen_K(given, K, seed, False)
            full = "–" if kind == "counts" else chosen_K(given, K, seed, True)[0][1]
            rows.append([*by, full])
            gap = reliability_gap(y, fit.r, fit.labels)
            at.append([mv.metrics.scores(y, fit.labels)["ari"], gap])
        chosen = [", ".join(map(str, of)) for of in zip(*rows, strict=True)]
        ari, gap = np.mean(at, axis=0)
        print(
            "|", " | ".join([kind, str(K), *chosen, f"{ari:.2f}", f"{gap:+.2f}"]), "|", flush=True
        )


def against_gaussian_mixture(n=2000, m=20, K=4, spread=0.5, max_iter=200, tol=1e-9):
    """One view with unit weights: largest difference of a probability, and CPU seconds of both."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, m)) + spread * rng.normal(size=(K, m))[rng.integers(K, size=n)]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    labels = KMeans(K, n_init=1, random_state=0).fit_predict(X)
    view, clock = View(X, ridge=1e-9, family="Gaussian"), time.process_time()
    settings = {"learn": False, "kappa": m * view.single, "tol": tol / 1000, "max_iter": max_iter}
    ours = Fit([view], soft(labels, K), **settings)
    spent, clock = time.process_time() - clock, time.process_time()
    means = np.array([X[labels == k].mean(axis=0) for k in range(K)])
    theirs = GaussianMixture(
        K, covariance_type="diag", reg_covar=1e-9, means_init=means, tol=tol, max_iter=max_iter,
        random_state=0,
    ).fit(X)  # fmt: skip
    took, shares = time.process_time() - clock, theirs.predict_proba(X)
    centers = (ours.r / ours.r.sum(axis=0)).T @ X
    order = [int(((theirs.means_ - c) ** 2).sum(axis=1).argmin()) for c in centers]
    return (
        float(np.abs(ours.r - shares[:, order]).max()),
        spent,
        len(ours.history),
        took,
        theirs.n_iter_,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--rows", type=int, default=1600, help="a sample of larger sets")
    parser.add_argument("--simulate", nargs="*", default=[], choices=["K", "speed"])
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    if "speed" in asked.simulate:
        for n in (2000, 20000):
            off, spent, steps, took, n_iter = against_gaussian_mixture(n)
            print(f"{n} samples: {spent:.2f} CPU s in {steps} iterations, GaussianMixture {took:.2f} in "
                  f"{n_iter}; largest difference of a probability {off:.1e}")  # fmt: skip
    if "K" in asked.simulate:
        simulate_K()
    if asked.data:
        table(asked.data, asked.sets, asked.seeds, asked.rows)


if __name__ == "__main__":
    main()
