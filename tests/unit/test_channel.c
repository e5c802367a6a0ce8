#include "batch/channel.h"

#include "run/run.h"
#include <check.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static int ends[2];

static void open_pair(void)
{
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
}

static void close_pair(void)
{
    close(ends[0]);
    close(ends[1]);
}

/* Bytes as another program might write them. */
static void write_bytes(const void *bytes, size_t size)
{
    ck_assert_int_eq(write(ends[0], bytes, size), (ssize_t)size);
}

/* As every frame begins, whatever the machine's byte order. */
static const uint32_t mark = 0x9D1C02E7;

static void write_frame(uint32_t length, const char *text)
{
    write_bytes(&mark, sizeof mark);
    write_bytes(&length, sizeof length);
    write_bytes(text, strlen(text));
}

/* What is there is there at once; the long wait is for a busy machine. */
static json_t *receive(enum channel_event expected)
{
    json_t *message = (json_t *)&ends; /* no message must be left there */
    const double wait_s = expected == CHANNEL_TIMEOUT ? 0.2 : 20;
    const enum channel_event event = channel_receive(ends[1], now_s() + wait_s, NULL, &message);

    ck_assert_int_eq(event, expected);
    ck_assert(expected == CHANNEL_MESSAGE || message == NULL);
    return message;
}

static const char *const messages[] = {
    "{}",
    "[]",
    "{\"do\": \"run\", \"job\": 3, \"skip\": [\"cpu\", \"\\u0001\\u001f\\u00e4\\ud83d\\ude00\"]}",
    "{\"x\": 0.10000000000000001, \"y\": -1.7976931348623157e308, \"z\": 5e-324}",
    "{\"i\": 9223372036854775807, \"j\": -9223372036854775808, \"n\": null, \"b\": true}",
    "{\"deep\": [[[[[[[[[[{\"a\": {\"b\": {\"c\": 1}}}]]]]]]]]]]}",
};

START_TEST(test_round_trip)
{
    json_t *message = json_loads(messages[_i], 0, NULL), *back;

    ck_assert_ptr_nonnull(message);
    ck_assert(channel_send(ends[0], json_incref(message)));
    back = receive(CHANNEL_MESSAGE);
    ck_assert(json_equal(back, message));
    ck_assert_uint_eq(message->refcount, 1); /* channel_send released its own */
    json_decref(back);
    json_decref(message);
}
END_TEST

START_TEST(test_messages_keep_their_order)
{
    for (int i = 0; i < 100; i++)
        ck_assert(channel_send(ends[0], json_pack("{si}", "i", i)));
    for (int i = 0; i < 100; i++) {
        json_t *message = receive(CHANNEL_MESSAGE);

        ck_assert_int_eq(json_integer_value(json_object_get(message, "i")), i);
        json_decref(message);
    }
}
END_TEST

/* Larger than any socket buffer: either end has to take it in pieces. */
START_TEST(test_large_message)
{
    enum { SIZE = 8 << 20 };
    json_t *message;
    const char *text;
    pid_t child;

    child = fork();
    if (child == 0) {
        char *large = calloc(1, SIZE + 1);

        memset(large, 'x', SIZE);
        _exit(channel_send(ends[0], json_pack("{ss}", "x", large)) ? 0 : 1);
    }
    ck_assert_int_eq(channel_receive(ends[1], now_s() + 20, NULL, &message), CHANNEL_MESSAGE);
    text = json_string_value(json_object_get(message, "x"));
    ck_assert_ptr_nonnull(text);
    ck_assert_uint_eq(strspn(text, "x"), SIZE);
    json_decref(message);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
}
END_TEST

/* What is not whole is kept until the rest comes, however it is cut. */
START_TEST(test_message_in_pieces)
{
    static const char text[] = "{\"a\":[1,2,3]}";
    const uint32_t length = sizeof text - 1;
    char frame[sizeof mark + sizeof length + sizeof text - 1];
    struct inbox in = {.got = 0};
    json_t *message, *whole = json_loads(text, 0, NULL);

    memcpy(frame, &mark, sizeof mark);
    memcpy(frame + sizeof mark, &length, sizeof length);
    memcpy(frame + sizeof mark + sizeof length, text, length);
    for (size_t i = 0; i < sizeof frame; i++) {
        ck_assert_int_eq(channel_take(ends[1], &in, &message), CHANNEL_TIMEOUT);
        ck_assert_ptr_null(message);
        write_bytes(frame + i, 1);
    }
    ck_assert_int_eq(channel_take(ends[1], &in, &message), CHANNEL_MESSAGE);
    ck_assert(json_equal(message, whole));
    json_decref(message);
    ck_assert_int_eq(channel_take(ends[1], &in, &message), CHANNEL_TIMEOUT);
    write_bytes(frame, 7);
    ck_assert_int_eq(channel_take(ends[1], &in, &message), CHANNEL_TIMEOUT);
    close(ends[0]);
    ends[0] = -1;
    ck_assert_int_eq(channel_take(ends[1], &in, &message), CHANNEL_ENDED);
    inbox_empty(&in);
    json_decref(whole);
}
END_TEST

/* --- what is no message ------------------------------------------------------------------------------- */

static const struct garbage {
    uint32_t length;
    const char *text;
} garbages[] = {
    {0, ""},  {0, "{}"},       {0xFFFFFFFF, "{}"}, {(1u << 28) + 1, "{}"}, {2, "xx"},
    {1, "{"}, {3, "{}}"},      {2, "{}"},          {7, "{\"a\":\xFF}"},    {9, "{\"a\":nan}"},
    {1, "1"}, {4, "\"\xC3(\""}};

START_TEST(test_garbage)
{
    const bool is_right = _i == 7;
    json_t *message;

    write_frame(garbages[_i].length, garbages[_i].text);
    message = receive(is_right ? CHANNEL_MESSAGE : CHANNEL_ENDED);
    json_decref(message);
}
END_TEST

/* What a plugin wrote into the channel, with a message behind it or, at the first of them, none. */
static const struct stray {
    const char *bytes;
    size_t size;
    bool is_told_at_once;
} strays[] = {{"\n", 1, true},
              {"\x05\0\0", 3, true},
              {"\0\0\0\0\0\0\0\0\0\0\0\0", 12, true},
              {"\xE7\x02\x1C\x9D", 4, false}, /* the mark itself, on most machines */
              {"{\"type\":\"end\"}", 14, true}};

START_TEST(test_stray_bytes)
{
    const struct stray *s = &strays[_i];
    struct inbox in = {.got = 0};
    json_t *message;

    write_bytes(s->bytes, s->size);
    ck_assert_int_eq(channel_take(ends[1], &in, &message),
                     s->is_told_at_once ? CHANNEL_ENDED : CHANNEL_TIMEOUT);
    inbox_empty(&in);
    write_bytes(s->bytes, s->size);
    ck_assert(channel_send(ends[0], json_object()));
    receive(CHANNEL_ENDED);
}
END_TEST

START_TEST(test_stray_bytes_behind_a_message)
{
    ck_assert(channel_send(ends[0], json_object()));
    write_bytes("x", 1);
    json_decref(receive(CHANNEL_MESSAGE));
    receive(CHANNEL_ENDED);
}
END_TEST

/* The other end goes away after each byte of a message. */
START_TEST(test_torn_frame)
{
    static const char frame[] = "\x09\x00\x00\x00{\"a\":123}";
    const size_t whole = sizeof mark + sizeof frame - 1, start = (size_t)_i;
    json_t *message;

    write_bytes(&mark, start < sizeof mark ? start : sizeof mark);
    if (start > sizeof mark)
        write_bytes(frame, start - sizeof mark);
    shutdown(ends[0], SHUT_WR);
    message = receive((size_t)_i == whole ? CHANNEL_MESSAGE : CHANNEL_ENDED);
    ck_assert_int_eq(json_integer_value(json_object_get(message, "a")),
                     (size_t)_i == whole ? 123 : 0);
    json_decref(message);
}
END_TEST

START_TEST(test_peer_is_gone)
{
    close(ends[1]);
    ck_assert(!channel_send(ends[0], json_object())); /* and no SIGPIPE */
    ends[1] = ends[0];
    receive(CHANNEL_ENDED);
}
END_TEST

START_TEST(test_what_was_sent_before_the_end_arrives)
{
    json_t *message;

    ck_assert(channel_send(ends[0], json_pack("{si}", "i", 1)));
    close(ends[0]);
    message = receive(CHANNEL_MESSAGE);
    ck_assert_int_eq(json_integer_value(json_object_get(message, "i")), 1);
    json_decref(message);
    receive(CHANNEL_ENDED);
    ends[0] = dup(ends[1]);
}
END_TEST

START_TEST(test_message_that_is_no_json)
{
    ck_assert(!channel_send(ends[0], NULL));
    ck_assert(!channel_send(ends[0], json_real(1))); /* a bare number is no message */
}
END_TEST

/* --- waiting --------------------------------------------------------------------------------------------- */

START_TEST(test_deadline)
{
    static const char rest[] = "\x09\x00\x00\x00{\"a\"";
    static const size_t sizes[] = {0, 2, 8};
    const double start = now_s();
    json_t *message;

    write_bytes(&mark, _i > 0 ? sizeof mark : 0);
    write_bytes(rest, sizes[_i]);
    ck_assert_int_eq(channel_receive(ends[1], start + 0.2, NULL, &message), CHANNEL_TIMEOUT);
    ck_assert_ptr_null(message);
    ck_assert(now_s() - start >= 0.2);
    ck_assert(now_s() - start < 5);
}
END_TEST

static volatile int stop;

static void on_alarm(int number)
{
    (void)number;
    stop = 1;
}

static void alarm_soon(void)
{
    const struct itimerval soon = {.it_value.tv_usec = 100000};

    setitimer(ITIMER_REAL, &soon, NULL);
}

/* A signal wakes the wait, and without *stop it only wakes it. */
START_TEST(test_stop)
{
    const struct sigaction action = {.sa_handler = on_alarm};
    const double start = now_s();
    json_t *message;

    sigaction(SIGALRM, &action, NULL);
    alarm_soon();
    ck_assert_int_eq(channel_receive(ends[1], start + 20, &stop, &message), CHANNEL_INTERRUPTED);
    ck_assert_ptr_null(message);
    ck_assert(now_s() - start < 19);
    ck_assert(channel_send(ends[0], json_object()));
    ck_assert_int_eq(channel_receive(ends[1], 0, &stop, &message), CHANNEL_INTERRUPTED);
    stop = 0;
    ck_assert_int_eq(channel_receive(ends[1], 0, &stop, &message), CHANNEL_MESSAGE);
    json_decref(message);
    alarm_soon();
    ck_assert_int_eq(channel_receive(ends[1], now_s() + 0.3, NULL, &message), CHANNEL_TIMEOUT);
    ck_assert(stop);
}
END_TEST

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

static Suite *channel_suite(void)
{
    Suite *suite = suite_create("channel");
    TCase *right = tcase_create("right"), *wrong = tcase_create("wrong");
    TCase *waiting = tcase_create("waiting");

    tcase_add_checked_fixture(right, open_pair, close_pair);
    tcase_add_loop_test(right, test_round_trip, 0, COUNT(messages));
    tcase_add_test(right, test_messages_keep_their_order);
    tcase_add_test(right, test_message_in_pieces);
    tcase_add_test(right, test_large_message);
    tcase_set_timeout(right, 60);
    tcase_add_checked_fixture(wrong, open_pair, close_pair);
    tcase_add_loop_test(wrong, test_garbage, 0, COUNT(garbages));
    tcase_add_loop_test(wrong, test_torn_frame, 0, 18);
    tcase_add_loop_test(wrong, test_stray_bytes, 0, COUNT(strays));
    tcase_add_test(wrong, test_stray_bytes_behind_a_message);
    tcase_add_test(wrong, test_peer_is_gone);
    tcase_add_test(wrong, test_what_was_sent_before_the_end_arrives);
    tcase_add_test(wrong, test_message_that_is_no_json);
    tcase_add_checked_fixture(waiting, open_pair, close_pair);
    tcase_add_loop_test(waiting, test_deadline, 0, 3);
    tcase_add_test(waiting, test_stop);
    tcase_set_timeout(waiting, 30);
    suite_add_tcase(suite, right);
    suite_add_tcase(suite, wrong);
    suite_add_tcase(suite, waiting);
    return suite;
}

int main(void)
{
    SRunner *runner = srunner_create(channel_suite());
    int failed;

    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
