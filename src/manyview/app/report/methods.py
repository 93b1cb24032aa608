"""A paragraph for the methods section of a paper, with citations and versions, to copy."""

from __future__ import annotations

from typing import Any

from .run_files import Run

REFERENCES = {
    "wmnmf": "Liu S. S., Lin L. Adaptive Weighted Multi-View Clustering.",
    "tsne": "van der Maaten L., Hinton G. Visualizing data using t-SNE. J Mach Learn Res 9:2579–2605 "
    "(2008).",
    "hennig": "Hennig C. Cluster-wise assessment of cluster stability. Comput Stat Data Anal 52:258–271 "
    "(2007).",
    "ari": "Hubert L., Arabie P. Comparing partitions. J Classif 2:193–218 (1985).",
    "km": "Kaplan E. L., Meier P. Nonparametric estimation from incomplete observations. J Am Stat Assoc "
    "53:457–481 (1958).",
    "logrank": "Mantel N. Evaluation of survival data and two new rank order statistics arising in its "
    "consideration. Cancer Chemother Rep 50:163–170 (1966).",
    "permutation": "Phipson B., Smyth G. K. Permutation p-values should never be zero. Stat Appl Genet Mol "
    "Biol 9:39 (2010).",
    "fdr": "Benjamini Y., Hochberg Y. Controlling the false discovery rate. J R Stat Soc B 57:289–300 "
    "(1995).",
    "kw": "Kruskal W. H., Wallis W. A. Use of ranks in one-criterion variance analysis. J Am Stat Assoc "
    "47:583–621 (1952).",
    "mw": "Mann H. B., Whitney D. R. On a test of whether one of two random variables is stochastically "
    "larger than the other. Ann Math Stat 18:50–60 (1947).",
    "sklearn": "Pedregosa F. et al. Scikit-learn: machine learning in Python. J Mach Learn Res "
    "12:2825–2830 (2011).",
}


class _Text:
    """Sentences with citations numbered in the order of their first use."""

    def __init__(self) -> None:
        self.sentences: list[str] = []
        self.cited: list[str] = []

    def say(self, sentence: str, *keys: str) -> None:
        for key in keys:
            if key not in self.cited:
                self.cited.append(key)
        numbers = ",".join(str(self.cited.index(key) + 1) for key in keys)
        self.sentences.append(f"{sentence} [{numbers}]." if keys else f"{sentence}.")


def methods_text(run: Run) -> dict[str, Any]:
    text = _Text()
    _data(run, text)
    _clustering(run, text)
    _evidence(run, text)
    _outcomes(run, text)
    _software(run, text)
    return {
        "text": " ".join(text.sentences),
        "references": [REFERENCES[key] for key in text.cited],
    }


def _data(run: Run, text: _Text) -> None:
    about = run.about
    n = len(run.views)
    text.say(
        f"{about['n_samples']} observations were clustered from {n} view{'s' * (n != 1)}: "
        f"{run.views_in_words}"
    )
    counts = {row["view"]: row["observations"] for row in run.tables["view_weights"]}
    partly = {name: m for name, m in counts.items() if m < about["n_samples"]}
    if partly:
        listed = ", ".join(f"{name}: {m}" for name, m in partly.items())
        text.say(f"Observations could lack a view (observed in {listed})")
    adjusted = about.get("adjusted")
    if adjusted:
        text.say(
            "Regressed out of every view beforehand (views of zeros and ones aside): "
            f"{', '.join(adjusted)}"
        )


def _clustering(run: Run, text: _Text) -> None:
    about = run.about
    if about["method"] == "RobustWMNMF":
        text.say(
            "Clusters were found by RobustWMNMF, a weighted multi-view nonnegative matrix "
            "factorisation after Liu and Lin whose view and observation weights are estimated from the "
            "agreement between the views",
            "wmnmf",
        )
    else:
        text.say(
            "Clusters were found by weighted multi-view nonnegative matrix factorisation (WM-NMF)",
            "wmnmf",
        )
    k = about["n_clusters"]
    if about.get("selection"):
        votes = ", ".join(about["selection"]["votes"])
        text.say(f"Their number, {k}, was chosen among candidates by {votes}")
    else:
        text.say(f"Their number, {k}, was given")


def _evidence(run: Run, text: _Text) -> None:
    about = run.about
    if about.get("stability"):
        text.say(
            f"Stability was judged by {about['stability']['runs']} refits on 80% of the observations: "
            "the Jaccard index of every cluster and the adjusted Rand index of pairs of refits (mean "
            f"{about['stability']['ari']:.2f})",
            "hennig",
            "ari",
        )
    if run.tables["leave_view_out"]:
        text.say("The model was also fitted without each view in turn")
    if about.get("refits_share"):
        text.say(
            "Refits took scaling, distances, weights and graphs from the model, and made embedding and "
            "clusters anew; without a view the weights and the graph were made anew as well"
        )
    if run.tables["markers"]:
        text.say(
            "Features of each cluster were compared with all other observations by Fisher's exact test "
            "(binary views) or by ranks; q-values are over all features and clusters of a view. The same "
            "data found the clusters, so these p-values are descriptive"
            + (
                "; those marked as without the view refer to clusters found without it"
                if run.tables["leave_view_out"]
                else ""
            ),
            "mw",
            "fdr",
        )
    if "t-SNE" in about.get("projection", ""):
        text.say(f"The map is a {about['projection']} of the fused embedding", "tsne")


def _outcomes(run: Run, text: _Text) -> None:
    survival = run.about.get("survival") or {}
    if survival.get("p_value") is not None:
        draws = survival["permutations"]
        text.say(
            "Survival was estimated by Kaplan and Meier and compared by the log-rank test"
            + (f" with p-values from {draws} permutations of the labels" if draws else ""),
            "km",
            "logrank",
            *(["permutation"] if draws else []),
        )
    # Dates, names and columns of one value are listed there without a test.
    done = [str(row["test"]) for row in run.tables["clinical_tests"] if row["test"] != "–"]
    if done:
        text.say(
            f"{len(done)} clinical column{'s were' if len(done) != 1 else ' was'} compared between "
            f"clusters ({', '.join(sorted(set(done)))}), adjusted for their number",
            *(["kw"] if any("Kruskal" in test for test in done) else []),
            "fdr",
        )
    if (run.about.get("classes") or {}).get("ari") is not None:
        text.say(
            "Agreement with known classes, which no method saw, is measured by the adjusted Rand index "
            "and the normalised mutual information",
            "ari",
        )


def _software(run: Run, text: _Text) -> None:
    versions = ", ".join(f"{name} {number}" for name, number in run.about["versions"].items())
    text.say(f"Software: {versions}; seed {run.about['seed']}", "sklearn")
