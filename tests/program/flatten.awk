# Turns h5dump's text (-A 0 -y -w 0 -m %.17g) into one line a dataset: its path, then its values.
/\{$/ {
    depth++
    name[depth] = ""
    if ($1 == "GROUP" || $1 == "DATASET") {
        name[depth] = $2
        gsub(/"/, "", name[depth])
    }
    if ($1 == "DATASET") {
        path = ""
        for (i = 1; i <= depth; i++) if (name[i] != "" && name[i] != "/") path = path "/" name[i]
        gsub(/\/\//, "/", path) # a group asked for by its path is printed as "/model"
        printf "%s", path
    }
    if ($1 == "DATA") values = 1
    next
}
$1 == "}" {
    if (values) { printf "\n"; values = 0 }
    depth--
    next
}
values { gsub(/,/, ""); printf " %s", $0 }
