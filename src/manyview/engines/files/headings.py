"""Which column of a table holds ids rather than a feature, told from its heading."""

from __future__ import annotations

import re

#: Headings of a column that certainly holds ids, and of one that does if its entries all differ.
ID_HEADING = re.compile(r"(.*[\W_])?ids?|.*[a-z]I[dD]s?|index|row\.?names?|unnamed: 0|", re.DOTALL)
ID_WORDS = re.compile(
    r"(sample|patient|subject|participant|donor|individual|case|cell|mouse|animal|observation)s?"
    r"([\W_]?(names?|no|nr|num|number|codes?|barcodes?))?|barcodes?|names?|obs|pid|eid|mrn|sid"
)
#: Headings of a column that names features: its rows are features by default.
FEATURE_WORDS = re.compile(
    r"(.*[\W_])?(genes?|probes?|probe[\W_]?sets?|features?|variables?|transcripts?|proteins?|peptides?"
    r"|metabolites?|cpgs?|snps?|mirnas?|loci|locus|ensembl|entrez|hugo|hgnc)"
    r"([\W_]?(ids?|names?|symbols?|codes?|accessions?))?|symbols?|id_ref",
)
#: Names that catalogues give to genes, transcripts, proteins, CpGs, microRNAs, probes and variants.
CATALOGUED = re.compile(
    r"ens[a-z]{0,4}[gtp]\d{11}(\.\d+)?([|_].*)?|cg\d{7,8}|(hsa|mmu|rno)-(mir|let)-.+|n[mr]_\d{6,9}(\.\d+)?"
    r"|\d{4,}(_[a-z])*_at|ilmn_\d{5,}|rs\d{5,}|chr[\dxym]{1,2}[:_-]\d+.*"
)
#: Symbols of families of genes, and of genes that are in nearly every table of human or mouse genes.
GENE_SYMBOLS = re.compile(
    r"actb|akt[123]|apc|arid1a|atm|b2m|braf|brca[12]|ccn[abde][123]|cdh\d+|cdk\d+|cdkn[12][abc]|col\d+a\d+"
    r"|ctnnb1|cxc[lr]\d+|cyp\d+[a-z]\d+|egfr|erbb[234]|esr[12]|fam\d+[a-z]|fgfr?\d+|gapdh|gata\d|hras"
    r"|jak[123]|kras|krt\d+|map[2-4]?k\d+|mki67|mt-(nd|co|atp)\d|myc|ndufa\d+|nf[12]|nras|olfr?\d+"
    r"|pik3ca|psm[abcd]\d+|pten|ptprc|rb1|rp[ls]\d+[ax]?|slc\d+a\d+|smad\d|sox\d+|stat\d[ab]?|tmem\d+"
    r"|tp53|vegfa|vhl|wnt\d+[ab]?|znf\d+|zfp\d+"
)
#: Headings of a column that names samples and nothing else.
SAMPLE_WORDS = re.compile(
    r"(.*[\W_])?(sample|patient|subject|participant|donor|individual|case|cell|mouse|animal)s?"
    r"([\W_]?(ids?|names?|no|nr|num|number|codes?|barcodes?))?|barcodes?"
    r"|obs|pid|eid|mrn|sid"
)
#: Columns that portals add to the names of genes.
NOTES_ON_FEATURES = re.compile(
    r"descriptions?|chr|chrom|chromosome|start|end|strand|cytoband|biotype|length|annotations?"
)


def is_sample_heading(heading: str) -> bool:
    """Whether a column so headed names samples."""
    return SAMPLE_WORDS.fullmatch(heading.strip().lower()) is not None


def is_note_on_features(heading: str) -> bool:
    """Whether a column so headed tells about the features in the rows, and is no sample."""
    text = heading.strip().lower()
    return is_feature_heading(text) or NOTES_ON_FEATURES.fullmatch(text) is not None


def is_feature_heading(heading: str) -> bool:
    """Whether a column so headed names features rather than samples."""
    return FEATURE_WORDS.fullmatch(heading.strip().lower()) is not None


def is_feature_name(name: str) -> bool:
    """Whether a name comes from a catalogue of features: no sample is called ENSG00000141510."""
    return CATALOGUED.fullmatch(name.strip().lower()) is not None


def is_gene_symbol(name: str) -> bool:
    """Whether a name is the symbol of a well-known gene; most symbols look like any other name."""
    return GENE_SYMBOLS.fullmatch(name.strip().lower()) is not None


def is_id_heading(heading: str, distinct: bool) -> bool:
    """Whether a column so headed holds ids; ``distinct`` says that no entry occurs twice."""
    heading = heading.strip()
    if ID_HEADING.fullmatch(heading) or ID_HEADING.fullmatch(heading.lower()):
        return True
    return distinct and ID_WORDS.fullmatch(heading.lower()) is not None
