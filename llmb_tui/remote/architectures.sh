# Architectures of the nodes by partition, counted on the cluster, because the list of a large cluster's nodes has
# megabytes. A line is `COUNT|ARCHITECTURE|PARTITIONS`.
scontrol -a -o show nodes | awk '
{ arch = ""; partitions = ""
  for (i = 1; i <= NF; i++) {
    if ($i ~ /^Arch=/) arch = substr($i, 6)
    if ($i ~ /^Partitions=/) partitions = substr($i, 12)
  }
  if (arch != "") count[arch "|" partitions]++
}
END { for (key in count) print count[key] "|" key }'
