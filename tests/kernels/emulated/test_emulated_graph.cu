/* The emulated device's captures: streams that fork and join are ordered by their events alone, whatever else
 * is queued, each time that a graph is launched; and each rule of a capture is seen to be kept. */
#include "tests/kernels/emulated/emulated.h"

static __global__ void add_one(const int *from, int *to) {
    *to = *from + 1;
}

static void begin(cudaStream_t stream) {
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
}

static cudaGraphExec_t end(cudaStream_t stream) {
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    cudaStreamEndCapture(stream, &graph);
    cudaGraphInstantiate(&exec, graph, 0);
    cudaGraphDestroy(graph);
    return exec;
}

/* x[1] = x[0] + 1 on one stream, x[2] = x[1] + 1 on another, x[3] = x[2] + 1 on the first, of the second
 * launch; behind each step another value is put on the other stream, where an event that is missing lets it
 * be read. */
static int launched(const char *order, bool fork, bool join) {
    setenv("GDN_EMULATED_ORDER", order, 1);
    int *x = managed<int>(4);
    cudaStream_t stream = new_stream(), beside = new_stream();
    cudaEvent_t begun = new_event(), forked = new_event(), joined = new_event(), ended = new_event();
    for (int i = 0; i < 4; i++) x[i] = 0;
    begin(stream);
    cudaEventRecord(begun, stream);
    cudaStreamWaitEvent(beside, begun);
    RUN_ON(stream, add_one, x, x + 1);
    cudaEventRecord(forked, stream);
    if (fork) cudaStreamWaitEvent(beside, forked);
    RUN_ON(beside, add_one, x + 1, x + 2);
    cudaEventRecord(joined, beside);
    if (join) cudaStreamWaitEvent(stream, joined);
    RUN_ON(stream, add_one, x + 2, x + 3);
    cudaEventRecord(ended, beside);
    cudaStreamWaitEvent(stream, ended);
    cudaGraphExec_t exec = end(stream);
    assert_int_equal(x[3], 0); /* nothing has run */
    for (int start = 10; start <= 20; start += 10) {
        RUN_ON(stream, put, start, x);
        cudaGraphLaunch(exec, stream);
    }
    cudaStreamSynchronize(stream);
    const int found = x[3];
    cudaGraphExecDestroy(exec);
    for (cudaStream_t made : {stream, beside}) cudaStreamDestroy(made);
    for (cudaEvent_t made : {begun, forked, joined, ended}) cudaEventDestroy(made);
    unsetenv("GDN_EMULATED_ORDER");
    return found;
}

static void streams_fork_and_join(void **) {
    for (const char *order : {"late", "early"}) assert_int_equal(launched(order, true, true), 23);
    assert_int_not_equal(launched("early", false, true), 23); /* the other stream is too early */
    assert_int_not_equal(launched("late", true, false), 23);  /* or too late */
}

static cudaStream_t first, other;
static cudaEvent_t event;

static void prepare(void) {
    first = new_stream(), other = new_stream(), event = new_event();
}

static void leaves_a_stream(void) {
    prepare();
    begin(first);
    cudaEventRecord(event, first);
    cudaStreamWaitEvent(other, event);
    RUN_ON(other, put, 1, managed<int>(1));
    cudaGraph_t graph;
    cudaStreamEndCapture(first, &graph);
}

static void joins_too_early(void) {
    prepare();
    cudaEvent_t back = new_event();
    begin(first);
    cudaEventRecord(event, first);
    cudaStreamWaitEvent(other, event);
    cudaEventRecord(back, other);
    cudaStreamWaitEvent(first, back);
    RUN_ON(other, put, 1, managed<int>(1)); /* behind what is waited for */
    cudaGraph_t graph;
    cudaStreamEndCapture(first, &graph);
}

static void waits_for_an_event_outside(void) {
    prepare();
    cudaEventRecord(event, other);
    begin(first);
    cudaStreamWaitEvent(first, event);
}

static void is_waited_for_from_outside(void) {
    prepare();
    begin(first);
    cudaEventRecord(event, first);
    end(first);
    cudaStreamWaitEvent(other, event);
}

static void asks_about_a_captured_event(void) {
    prepare();
    begin(first);
    cudaEventRecord(event, first);
    end(first);
    cudaEventQuery(event);
}

static void waits_meanwhile(void) {
    prepare();
    begin(first);
    cudaStreamSynchronize(other);
}

static void asks_meanwhile(void) {
    prepare();
    begin(first);
    cudaStreamQuery(other);
}

static void asks_about_an_event_meanwhile(void) {
    prepare();
    cudaEventRecord(event, other);
    begin(first);
    cudaEventQuery(event);
}

static void rules_are_kept(void **) {
    expect_fault(leaves_a_stream, "has not waited for another stream", "");
    expect_fault(joins_too_early, "has not waited for another stream", "");
    expect_fault(waits_for_an_event_outside, "other side of a capture", "");
    expect_fault(is_waited_for_from_outside, "other side of a capture", "");
    expect_fault(asks_about_a_captured_event, "cudaEventQuery of an event that was captured", "");
    expect_fault(waits_meanwhile, "cudaStreamSynchronize while work is captured", "");
    expect_fault(asks_meanwhile, "cudaStreamQuery while work is captured", "");
    expect_fault(asks_about_an_event_meanwhile, "cudaEventQuery while work is captured", "");
}

/* An event is an ordinary one again once it is recorded again. */
static void events_come_back(void **) {
    int *x = managed<int>(1);
    prepare();
    begin(first);
    cudaEventRecord(event, first);
    cudaGraphExecDestroy(end(first));
    RUN_ON(other, put, 3, x);
    cudaEventRecord(event, other);
    assert_int_equal(cudaEventSynchronize(event), cudaSuccess);
    assert_int_equal(*x, 3);
}

/* A graph that is launched and then destroyed runs to its end. */
static void destroyed_graphs_go_on(void **) {
    int *x = managed<int>(2);
    prepare();
    x[0] = 4;
    begin(first);
    cudaEventRecord(event, first);
    cudaStreamWaitEvent(other, event);
    RUN_ON(other, add_one, x, x + 1);
    cudaEventRecord(event, other);
    cudaStreamWaitEvent(first, event);
    cudaGraphExec_t exec = end(first);
    cudaGraphLaunch(exec, first);
    cudaGraphExecDestroy(exec);
    cudaStreamSynchronize(first);
    assert_int_equal(x[1], 5);
    begin(first);
    cudaGraphExecDestroy(end(first)); /* which releases the other, too */
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(streams_fork_and_join),
                                       cmocka_unit_test(rules_are_kept), cmocka_unit_test(events_come_back),
                                       cmocka_unit_test(destroyed_graphs_go_on)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
