# Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#
# awk -f thousand_nodes.awk: the events of test/doctor/gpu/python/thousand_nodes.py, as the recorder writes them
# (docs/doctor_events.md), with a C frame and a Python frame a stack: a capture of a thousand kernels, replayed.

function line(kind, fields) {
    gsub(/ /, "\t", fields)
    print kind "\t" fields
}

# A call of the driver at `line_number` of the script. Its stack is written at its first use.
function call(name, line_number, fields,    key) {
    key = name line_number
    if (!(key in stacks)) {
        stacks[key] = ++num_stacks
        line("frame", "id=" 2 * num_stacks - 1 " module=/lib/libcuda.so.1 offset=0x" 1000 * num_stacks " function=" name)
        line("pyframe", "id=" 2 * num_stacks " file=/gcap/thousand_nodes.py line=" line_number " function=layer")
        line("stack", "id=" num_stacks " c=" 2 * num_stacks - 1 " py=" 2 * num_stacks)
    }
    ++calls
    line("call", "n=" calls " t=" 1000 * calls " end=" 1000 * calls + 500 " thread=1 function=" name " result=0 stack=" \
        stacks[key] " stream=1 " fields)
}

function id(graph, node) { return sprintf("0x%x%08x", graph, node) }

BEGIN {
    split("mul relu add tanh", kernels, " ")
    split("12 14 16 17", lines, " ")
    line("gcap-events", "version=1 pid=1098 time=1795422505 program=thousand_nodes.py")
    line("system", "driver=13000 cupti=130001")
    line("thread", "id=1 os=1098 name=python3")
    line("stream", "id=1 what=nonblocking")
    call("cuStreamBeginCapture", 31, "mode=global")
    for (i = 0; i < 1000; ++i) {
        call("cuStreamGetCaptureInfo", lines[i % 4 + 1], "status=active")
        if (i > 0) line("edge", "graph=1 from=" id(1, i - 1) " to=" id(1, i))
        line("node", "graph=1 id=" id(1, i) " type=kernel call=" calls + 1)
        call("cuLaunchKernel", lines[i % 4 + 1], "kernel=" kernels[i % 4 + 1])
    }
    call("cuStreamEndCapture", 31, "graph=1")
    line("exec", "id=1 graph=1 call=" calls + 1)
    for (i = 0; i < 1000; ++i) line("clone", "exec=1 from=" id(1, i) " to=" id(2, i))
    call("cuGraphInstantiateWithFlags", 31, "graph=1 exec=1")
    line("replays", "exec=1 count=11")
    line("end", "t=" 1000000 * calls)
}
