# Clusters of two tables from R, by the command line.
#   Rscript cluster.R rna.csv meth.csv 3 run

arguments <- commandArgs(trailingOnly = TRUE)
rna <- arguments[1]
meth <- arguments[2]
clusters <- arguments[3]
out <- arguments[4]

status <- system2(
  "manyview",
  c("fit", shQuote(paste0("rna=", rna)), shQuote(paste0("meth=", meth)),
    "--clusters", clusters, "--out", shQuote(out), "--no-report", "--quiet")
)
if (status != 0) quit(status = status)

labels <- read.csv(file.path(out, "labels.csv"), stringsAsFactors = FALSE)
print(table(labels$cluster))
