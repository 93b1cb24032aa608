"""
Documents in several languages
==============================

This example clusters news stories in English, French and German. Each language is a view with the counts
of its words. The stories are simulated: six topics of unequal size, and word frequencies as in real texts
(Zipf). The German translations of a sixth of the stories have a wrong topic, and some stories have no
French translation.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse as sp

import manyview as mv

# %%
# **Stories.** Each topic has its own words in each language. A story has words of its topic and common
# words.

rng = np.random.default_rng(0)
SIZES = [120, 90, 70, 50, 40, 30]
topics = rng.permutation(np.repeat(np.arange(len(SIZES)), SIZES))


def counts(n_words: int, length: float, share: float, of: np.ndarray) -> sp.csr_array:
    """Word counts of stories on the topics ``of``; a ``share`` of the words is from the topic."""
    common = 1 / np.arange(1, n_words + 1)
    common /= common.sum()
    own = rng.dirichlet(np.full(n_words, 0.02), size=len(SIZES))
    lengths = rng.poisson(length * rng.lognormal(0, 0.4, size=len(of)))
    words = [
        rng.multinomial(n, (1 - share) * common + share * own[t])
        for n, t in zip(lengths, of, strict=True)
    ]
    return sp.csr_array(np.array(words, dtype=float))


wrong_topic = rng.random(len(topics)) < 1 / 6
anything = np.where(wrong_topic, rng.permutation(topics), topics)
views = {
    "english": counts(3000, 70, 0.22, topics),
    "french": counts(3500, 80, 0.20, topics),
    "german": counts(5000, 70, 0.24, anything),
}

# %%
# **Missing translations.** Every fifth story has no French. A row of zeros is treated as missing.

untranslated = np.arange(len(topics)) % 5 == 0
views["french"] = sp.csr_array(sp.diags_array((~untranslated).astype(float)) @ views["french"])
for name, X in views.items():
    print(
        f"{name:8} {X.shape[0]} stories, {X.shape[1]} words, {X.nnz / np.prod(X.shape):.1%} not zero"
    )

# %%
# **Fit.** The matrices stay sparse. ``scale="log"`` is for counts (the default would choose it, too, with a
# warning). German has the lowest weight, because some neighbors in German are not neighbors in the other
# languages.

warnings.filterwarnings("ignore", ".*80 samples are (zero|missing)", UserWarning)
model = mv.RobustWMNMF(n_clusters=6, scale="log", random_state=0).fit(views)
for name, weight in zip(model.view_names_in_, model.view_weights_, strict=True):
    print(f"{name:8} weight {weight:.2f}")
for name, score in list(mv.metrics.scores(topics, model.labels_).items())[:3]:
    print(f"{name:8} {score:.3f}")

# %%
# **One language at a time.** Here all languages together are better than each alone. This is not always so:
# if a third of the German stories have a wrong topic, all three languages have an NMI of .76, and English
# alone has .82. Leave out a view that you know to be poor.

for name, X in views.items():
    alone = mv.RobustWMNMF(n_clusters=6, scale="log", random_state=0).fit({name: X})
    present = alone.labels_ >= 0
    nmi = mv.metrics.scores(topics[present], alone.labels_[present])["nmi"]
    print(f"{name:8} nmi {nmi:.3f} of {present.sum()} stories")

# %%
# **Each story.** ``reliance_`` says how much a story relies on each language. Stories with a wrong German
# topic rely less on German.

german = list(model.view_names_in_).index("german")
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
mv.plot.embedding(model, ax=left)
right.hist(
    [model.reliance_[~wrong_topic, german], model.reliance_[wrong_topic, german]],
    bins=20,
    label=["right topic", "wrong topic"],
)
right.set_xlabel("reliance on German")
right.set_ylabel("stories")
right.legend(title="German translation")
plt.show()

# %%
# **Words of a topic** are markers of its cluster. They are tested on clusters of the other languages, so
# the p-values are valid.

found = mv.outcomes.markers(model, views, leave_view_out=True)
for row in found.top(1, direction="up").to_dict("records"):
    print(
        f"cluster {row['cluster']}: {row['view']} word {row['feature']}, q = {row['q_value']:.1g}"
    )
