// Clusters of two tables, and their labels for the next step.
//   nextflow run main.nf --rna rna.csv --meth meth.csv --clusters 3

params.rna = 'rna.csv'
params.meth = 'meth.csv'
params.clusters = 'auto'
params.outdir = 'results'

process CLUSTER {
    publishDir params.outdir, mode: 'copy'

    input:
    path rna
    path meth

    output:
    path 'clusters/labels.csv', emit: labels
    path 'clusters/model.npz', emit: model
    path 'summary.json', emit: summary

    script:
    """
    manyview fit rna='${rna}' meth='${meth}' --clusters ${params.clusters} \\
        --out clusters --no-report --json > summary.json
    """
}

workflow {
    CLUSTER(file(params.rna), file(params.meth))
    CLUSTER.out.labels.view()
}
