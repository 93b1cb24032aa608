"""
Documents in several languages
==============================

News stories in English, French and German. Each language is a view of counts of its own words; no
dictionary joins them. The stories are made up here, so that their topics are known: six topics of unequal
size, words as frequent as words are (Zipf). The German translations of a sixth of the stories were made
by somebody who wrote about anything, and some stories have no French one.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse as sp

import manyview as mv

# %%
# **Stories.** A topic prefers some words of each language. A story mixes its topic with common words
# and is longer in one language than in another.

rng = np.random.default_rng(0)
SIZES = [120, 90, 70, 50, 40, 30]
topics = rng.permutation(np.repeat(np.arange(len(SIZES)), SIZES))


def counts(n_words: int, length: float, share: float, of: np.ndarray) -> sp.csr_array:
    """Words of stories on the topics ``of``; a ``share`` of the words is the topic's own."""
    common = 1 / np.arange(1, n_words + 1)
    common /= common.sum()
    own = rng.dirichlet(np.full(n_words, 0.02), size=len(SIZES))
    lengths = rng.poisson(length * rng.lognormal(0, 0.4, size=len(of)))
    words = [
        rng.multinomial(n, (1 - share) * common + share * own[t])
        for n, t in zip(lengths, of, strict=True)
    ]
    return sp.csr_array(np.array(words, dtype=float))


careless = rng.random(len(topics)) < 1 / 6
anything = np.where(careless, rng.permutation(topics), topics)
views = {
    "english": counts(3000, 70, 0.22, topics),
    "french": counts(3500, 80, 0.20, topics),
    "german": counts(5000, 70, 0.24, anything),
}

# %%
# **Missing translations.** A row of zeros counts as missing: every fifth story has no French.

untranslated = np.arange(len(topics)) % 5 == 0
views["french"] = sp.csr_array(sp.diags_array((~untranslated).astype(float)) @ views["french"])
for name, X in views.items():
    print(
        f"{name:8} {X.shape[0]} stories, {X.shape[1]} words, {X.nnz / np.prod(X.shape):.1%} not zero"
    )

# %%
# **One fit.** The matrices stay sparse. Logarithms are for counts (by default they would be taken, too, and
# a warning would say so; another says that rows are missing, which we know). German gets the lowest
# weight: some of its neighbors are not neighbors elsewhere.

warnings.filterwarnings("ignore", ".*80 samples are (zero|missing)", UserWarning)
model = mv.RobustWMNMF(n_clusters=6, scale="log", random_state=0).fit(views)
for name, weight in zip(model.view_names_in_, model.view_weights_, strict=True):
    print(f"{name:8} weight {weight:.2f}")
for name, score in list(mv.metrics.scores(topics, model.labels_).items())[:3]:
    print(f"{name:8} {score:.3f}")

# %%
# **One language at a time**, by the same method: what the others add. That they add something is no law.
# The numbers of this page were chosen where they do; with a third of the German careless instead of a
# sixth, all three together have an NMI of .76, and English alone .82: leave out a view you know to be poor.

for name, X in views.items():
    alone = mv.RobustWMNMF(n_clusters=6, scale="log", random_state=0).fit({name: X})
    told = alone.labels_ >= 0
    nmi = mv.metrics.scores(topics[told], alone.labels_[told])["nmi"]
    print(f"{name:8} nmi {nmi:.3f} of {told.sum()} stories")

# %%
# **Story by story.** `reliance_` says which language each story was placed by. Those of the careless
# translator rely less on German, though nobody said whose they are.

german = list(model.view_names_in_).index("german")
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
mv.plot.embedding(model, ax=left)
right.hist(
    [model.reliance_[~careless, german], model.reliance_[careless, german]],
    bins=20,
    label=["careful", "careless"],
)
right.set_xlabel("reliance on German")
right.set_ylabel("stories")
right.legend(title="German translator")
plt.show()

# %%
# **Words of a topic** are features that set its cluster apart; they are tested on clusters found without
# their own language, so that the test is honest.

found = mv.outcomes.markers(model, views, leave_view_out=True)
for row in found.top(1, direction="up").to_dict("records"):
    print(
        f"cluster {row['cluster']}: {row['view']} word {row['feature']}, q = {row['q_value']:.1g}"
    )
