# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# Reads a list of pairs and then headers of ours, and prints what is to be compared with ONNX Runtime's headers: a line
# for each declaration, as compare.h takes them, and those of types into TYPES. What a header declares is in the list, or
# is refused, and the other way round.
#   awk -v types=TYPES -f rows.awk PAIRS HEADER...
# Lines of PAIRS, which may end in a comment:
#   type OURS THEIRS      an opaque struct
#   struct OURS THEIRS    a struct whose members are compared, by their names
#   enum OURS THEIRS      an enum, and then
#   value OURS THEIRS     each of its values
#   function OURS THEIRS  a type of functions
#   alone OURS            a macro, or a type whose members are compared in their places alone
# A member that is a function says its slot in the comment behind it, and the first version that has it where that is
# not the oldest: "// 24, since 27". A gap is an array gap_N of slots, of which N is the first.

function kind_of(name) { return name in kinds ? kinds[name] : "" }

function refuse(what) {
  print FILENAME ":" FNR ": " what >"/dev/stderr"
  refused = 1
}

# What is theirs of our `name`, which is of `kind`; "" if the list does not say.
function theirs_of(kind, name) {
  declared[name] = 1
  if (kind_of(name) == kind) return theirs[name]
  refuse(name " is declared, but the list of pairs has no '" kind " " name "'")
  return ""
}

# --- PAIRS ----------------------------------------------------------------------------------------------------------

FNR == NR {
  sub(/ *#.*/, "")
  if (NF == 0) next
  if ($1 !~ /^(type|struct|enum|value|function|alone)$/ || NF != ($1 == "alone" ? 2 : 3)) {
    refuse("'" $0 "' is no pair")
  } else if ($2 in kinds) {
    refuse($2 " is listed twice")
  }
  list = FILENAME
  kinds[$2] = $1
  theirs[$2] = $3
  next
}

# --- Headers --------------------------------------------------------------------------------------------------------

/^#(ifndef|include|endif)/ || /^#define [A-Za-z0-9_]+$/ { next }

/^#/ {
  if ($1 == "#define") theirs_of("alone", $2)
  else refuse("'" $0 "' is not understood")
  next
}

{
  line = $0
  note = ""
  if ((at = index(line, "//")) > 0) {
    note = substr(line, at + 2)
    line = substr(line, 1, at - 1)
  }
  gsub(/^ +| +$/, "", line)
  statement = statement (statement == "" || line == "" ? "" : " ") line
  if (statement !~ /[;{]$/ && !(within == "enum" && statement ~ /,$/)) next
  if (within == "struct") take_member(statement)
  else if (within == "enum") take_value(statement)
  else take(statement)
  statement = ""
}

END {
  for (name in kinds) if (!(name in declared)) refuse(name " of " list " is not declared")
  if (statement != "" || within != "") refuse("the end comes within '" within " " ours "'")
  exit refused
}

function print_type(name, other) { print "GCAP_ABI_TYPE(" name ", " other ")" >types }

# A type of structs, opaque or not, once.
function take_struct(name, whole, kind, other) {
  kind = whole || kind_of(name) == "struct" ? "struct" : "type"
  other = theirs_of(kind, name)
  if (other != "" && !(name in seen)) print_type(name, other)
  seen[name] = 1
  return other
}

# The name that comes after `before` in `text`.
function name_after(text, before) {
  sub(before, "", text)
  sub(/[^A-Za-z0-9_].*/, "", text)
  return text
}

# Outside of struct and enum.
function take(text) {
  has_gap = 0
  if (text ~ /^typedef struct [a-z0-9_]+ [a-z0-9_]+;$/) {
    ours = name_after(text, "typedef struct ")
    take_struct(ours, 0)
    if (text != "typedef struct " ours " " ours "_t;") refuse("'" text "' is not understood")
  } else if (text ~ /^(typedef )?struct [a-z0-9_]+ \{$/) {
    ours = name_after(text, "^(typedef )?struct ")
    other = take_struct(ours, 1)
    within = "struct"
  } else if (text ~ /^typedef enum [a-z0-9_]+ \{$/) {
    ours = name_after(text, "typedef enum ")
    other = theirs_of("enum", ours)
    if (other != "") {
      print_type(ours, other)
      print "GCAP_ABI_ENUM(" ours ", " other ")"
    }
    within = "enum"
  } else if (text ~ /^typedef [^()]*\(\*[a-z0-9_]+\)\([^;]*\);$/) {
    ours = name_after(text, "^[^(]*[(][*]")
    if (kind_of(ours) == "alone") declared[ours] = 1
    else if ((other = theirs_of("function", ours)) != "") print "GCAP_ABI_FUNCTION(" ours ", " other ")"
  } else {
    refuse("'" text "' is not understood")
  }
}

function take_member(text, name, slot, since, alone) {
  slot = match(note, /^ [0-9]+/) ? substr(note, 2, RLENGTH - 1) : -1
  since = match(note, /since [0-9]+/) ? substr(note, RSTART + 6, RLENGTH - 6) : 0
  alone = text ~ /^[a-z0-9_]+ [A-Za-z0-9_]+;$/ && kind_of(name_after(text, "")) == "alone"
  if (text == "};" || text == "} " ours "_t;") {
    print "GCAP_ABI_END(" ours ", " other ", " (has_gap ? "false" : "true") ")"
    within = ""
  } else if (text ~ /^[a-z0-9_]+ gap_[0-9]+\[[0-9]+\];$/) {
    name = name_after(text, "^[^ ]* ")
    print "GCAP_ABI_GAP(" ours ", " name ", " substr(name, 5) ")"
    has_gap = 1
  } else if (text ~ /^uint32_t [a-z_]+;$/) {
    print "GCAP_ABI_MEMBER(" ours ", " other ", " name_after(text, "^[^ ]* ") ", -1, 0)"
  } else if (alone || text ~ /^[^()]*\(\*[A-Za-z0-9_]+\)\([^;]*\);$/) {
    name = name_after(text, alone ? "^[^ ]* " : "^[^(]*[(][*]")
    if (slot < 0) refuse(ours "." name " does not say its slot")
    print "GCAP_ABI_" (alone ? "PLACE" : "MEMBER") "(" ours ", " other ", " name ", " slot ", " since ")"
  } else {
    refuse("'" text "' in " ours " is not understood")
  }
}

function take_value(text, name, value) {
  if (text == "} " ours "_t;") {
    within = ""
    return
  }
  name = name_after(text, "")
  if (text !~ /^[A-Z0-9_]+( = -?[0-9]+)?,$/) refuse("'" text "' in " ours " is not understood")
  else if ((value = theirs_of("value", name)) != "") print "GCAP_ABI_VALUE(" name ", " value ")"
}
