"""The extension the paper proposes, tried: its weights in a mixture model. The library does not have it.

    python benchmarks/mixture.py --data DIR [--sets NAME ...] [--seeds 3]

All views share one membership r of each sample. d_isk ≥ 0 is the deviance per observed feature of sample i
in view s from cluster k (Gaussian with a diagonal covariance, multinomial or Bernoulli; a ridge is added to
the data as noise), divided by its mean for a single cluster: neither width nor unit of a view matters. With
Σ_s α_s = 1 and Σ_s w_is = 1,

    J = Σ_ik r_ik [ log r_ik − log π_k + κ/2 Σ_s ((n α_s)^p + (n w_is)²) d_isk ].

κ is half the mean of the views' effective numbers of features. As in the paper, α weights a view and w
a sample in a view, in closed form: α_s ∝ A_s^(−1/(p−1)) with A_s = Σ_ik r_ik d_isk, and w_is ∝ 1/Σ_k r_ik
d_isk. Memberships, densities, π, α and w are exact minimizers in turn, so J never rises; every run asserts
it. Missing rows and entries take no part. Printed: NMI/ARI from k-means (the lowest J of five starts), from
the labels of RobustWMNMF, and without weights, next to RobustWMNMF and WMNMF; the mean probability of the
labels minus the share of correct ones; the number of clusters by BIC and ICL (made-up data); the difference
from scikit-learn's GaussianMixture for one view, and the CPU time next to it.
"""

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from scipy.special import logsumexp, xlogy
from sklearn.cluster import KMeans
from sklearn.mixture import GaussianMixture

import manyview as mv
from manyview.labels import matched
from quality import load_set

RIDGE = 0.05
SETS = ["handwritten6", "msrcv1_5", "3sources", "bbcsport", "rosmap", "tcga_laml170", "100leaves"]
SETS += ["liver_toxicity", "webkb_texas", "bdgp3_missing_p05", "proteinfold12", "scene15"]


class View:
    """A view as its family of densities wants it, and the deviance of its rows from each cluster."""

    def __init__(self, X, ridge=RIDGE, family=None):
        X = np.asarray(X.toarray() if sp.issparse(X) else X, dtype=float)
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

    def deviance(self, r):
        """Of all rows from the clusters, whose densities are the best for the weights r of rows."""
        seen, n = self.seen.astype(float), np.maximum(self.seen.sum(axis=1, keepdims=True), 1)
        total = np.maximum(r.T @ seen, 1e-12)
        mean = (r.T @ self.X) / total
        if self.family == "Gaussian":
            var = np.maximum((r.T @ self.X**2) / total - mean**2, 0) + self.ridge
            d = (self.X**2) @ (1 / var).T - 2 * self.X @ (mean / var).T
            d = (d + seen @ ((mean**2 + self.ridge) / var + np.log(var / self.ridge) - 1).T) / 2
        else:
            mean = np.clip(mean, 1e-12, 1 - 1e-12)
            d = xlogy(self.X, self.X).sum(axis=1, keepdims=True) - self.X @ np.log(mean).T
            if self.family == "Bernoulli":
                rest = seen - self.X
                d += xlogy(rest, rest).sum(axis=1, keepdims=True) - rest @ np.log(1 - mean).T
        return np.maximum(d, 0) / n


def fit(views, r, p=1.5, learn=True, max_iter=200, tol=1e-6, kappa=None):
    """Memberships, α, w and the values of J from the memberships r."""
    n = len(views)
    present = np.column_stack([view.present for view in views])
    single = [float(v.deviance(np.ones((len(r), 1)))[v.present].mean()) for v in views]
    kappa = np.mean([view.n_effective for view in views]) / 2 if kappa is None else kappa
    counts = np.maximum(present.sum(axis=1, keepdims=True), 1)
    alpha, w, history = np.full(n, 1 / n), present / counts, []
    for _ in range(max_iter):
        scale = kappa / 2 * present * ((n * alpha) ** p + (counts * w) ** 2)
        d = [view.deviance(r * scale[:, [s]]) / single[s] for s, view in enumerate(views)]
        own = np.column_stack([(r * part).sum(axis=1) for part in d])
        if learn:
            alpha = np.maximum(own.sum(axis=0), 1e-12) ** (-1 / (p - 1))
            alpha /= alpha.sum()
            w = present / np.maximum(own, 1e-9)
            w /= np.maximum(w.sum(axis=1, keepdims=True), 1e-300)
        scale = kappa / 2 * present * ((n * alpha) ** p + (counts * w) ** 2)
        logs = np.log(r.mean(axis=0) + 1e-300) - sum(scale[:, [s]] * d[s] for s in range(n))
        history.append(-float(logsumexp(logs, axis=1).sum()))
        r = np.exp(logs - logsumexp(logs, axis=1, keepdims=True))
        if len(history) > 1 and history[-2] - history[-1] <= tol * abs(history[-1]):
            break
    steps = np.diff(history)
    assert (steps <= 1e-9 * len(r) * kappa).all(), f"J rose by {steps.max():g}"
    return r, alpha, w, history, kappa


def soft(labels, K):
    return np.where(np.arange(K) == np.asarray(labels)[:, None], 0.9, 0) + 0.1 / K


def started(views, K, seed, n_starts=5, **settings):
    """The fit with the lowest J from k-means of all views side by side."""
    blocks = [v.X / np.sqrt(max((v.X.var(axis=0)).sum(), 1e-12)) for v in views]
    found = []
    for start in range(n_starts):
        labels = KMeans(K, n_init=1, random_state=100 * seed + start).fit_predict(np.hstack(blocks))
        found.append(fit(views, soft(labels, K), **settings))
    return min(found, key=lambda result: result[3][-1])


def criteria(result, views, K):
    """BIC and ICL; parameters count as much as a feature's evidence does."""
    r, _, _, history, kappa = result
    free = K - 1 + 2 * K * kappa * len(views)
    bic = 2 * history[-1] + free * np.log(len(r))
    return bic, bic - 2 * float(xlogy(r, r).sum())


def reliability_gap(y, shares, labels):
    """Mean probability of the labels minus the share of samples in the cluster of their class."""
    right = matched(y, labels, int(max(y.max(), labels.max())) + 1)[labels] == y
    return float(shares.max(axis=1).mean() - right.mean())


def table(data, sets, seeds):
    heads = (
        "set,RobustWMNMF,WMNMF,mixture,from RobustWMNMF,without weights,α,gap of p,of confidence_"
    )
    print("|", heads.replace(",", " | "), "|\n|" + "---|" * 9)
    for name in sets:
        given, y = load_set(data, name)
        y = np.unique(y, return_inverse=True)[1]
        K, rows = int(y.max()) + 1, []
        views = [View(X) for X in given]
        for seed in range(seeds):
            robust = mv.RobustWMNMF(K, random_state=seed).fit(given)
            labels = np.maximum(robust.labels_, 0)
            try:
                paper = (
                    mv.WMNMF(K, scale="minmax", missing="allow", random_state=seed)
                    .fit(given)
                    .labels_
                )
            except ValueError:
                paper = None
            own = started(views, K, seed)
            after = fit(views, soft(labels, K))
            plain = started(views, K, seed, learn=False)
            rows.append(
                (
                    labels,
                    paper,
                    own[0].argmax(1),
                    after[0].argmax(1),
                    plain[0].argmax(1),
                    after,
                    robust,
                )
            )
        cells = [
            "–"
            if any(row[j] is None for row in rows)
            else "/".join(
                f"{np.mean([mv.metrics.scores(y, row[j])[k] for row in rows]):.3f}"
                for k in ("nmi", "ari")
            )
            for j in range(5)
        ]
        alpha = ", ".join(f"{a:.2f}" for a in rows[0][5][1])
        gap = np.mean([reliability_gap(y, row[5][0], row[3]) for row in rows])
        sure = np.mean([reliability_gap(y, row[6].confidence_, row[0]) for row in rows])
        print(f"| {name} | {' | '.join(cells)} | {alpha} | {gap:+.3f} | {sure:+.3f} |", flush=True)


def made_up():
    """The number of clusters by BIC and ICL, null data, and GaussianMixture for one view."""
    rng = np.random.default_rng(0)
    for K, apart in ((1, 0.0), (3, 4.0), (5, 4.0)):
        y = rng.integers(K, size=400)
        views = [
            View(apart * rng.normal(size=(K, m))[y] / m**0.25 + rng.normal(size=(400, m)))
            for m in (10, 30)
        ]
        scores = {k: criteria(started(views, k, 0), views, k) for k in range(1, 8)}
        chosen = [min(scores, key=lambda k: scores[k][j]) for j in (0, 1)]
        print(f"{K} clusters in two views: BIC says {chosen[0]}, ICL {chosen[1]}")
    X = rng.normal(size=(2000, 20)) + 0.5 * rng.normal(size=(4, 20))[rng.integers(4, size=2000)]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    labels = KMeans(4, n_init=1, random_state=0).fit_predict(X)
    view, clock = View(X, ridge=1e-9, family="Gaussian"), time.process_time()
    unit = float(view.deviance(np.ones((len(X), 1))).mean())
    ours = fit([view], soft(labels, 4), learn=False, kappa=20 * unit, tol=1e-12)
    spent, clock = time.process_time() - clock, time.process_time()
    means = np.array([X[labels == k].mean(axis=0) for k in range(4)])
    theirs = GaussianMixture(
        4, covariance_type="diag", reg_covar=1e-9, means_init=means, tol=1e-9, max_iter=200
    )
    shares = theirs.fit(X).predict_proba(X)
    print(
        f"one view: largest difference from GaussianMixture's probabilities "
        f"{np.abs(np.sort(ours[0], axis=1) - np.sort(shares, axis=1)).max():.1e}; "
        f"CPU time {spent / max(time.process_time() - clock, 1e-9):.1f} times"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--seeds", type=int, default=3)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    made_up()
    if asked.data:
        table(asked.data, asked.sets, asked.seeds)


if __name__ == "__main__":
    main()
