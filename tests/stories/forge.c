/* Takes a name, gives up every privilege, and has the kernel write a line that quotes the name.
 *
 * usage: forge NAME WAY
 */
#include <grp.h>
#include <linux/futex.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NOBODY 65534

static volatile int sink;

static void segfault(void)
{
    *(volatile int *)0 = 1;
}

#ifdef __x86_64__
static void divide(void)
{
    __asm__ volatile("xorl %%ecx, %%ecx; idivl %%ecx" ::: "eax", "ecx", "edx");
}

static void privileged(void)
{
    __asm__ volatile("hlt");
}

static void vsyscall(void)
{
    sink = *(volatile int *)0xffffffffff600000;
}

static void umip(void)
{
    char table[10];
    __asm__ volatile("sgdt %0" : "=m"(table));
}
#endif

static void futex(void)
{
    int one = 0, two = 0;
    int operation = FUTEX_OP((FUTEX_OP_ADD | FUTEX_OP_OPARG_SHIFT), 99, FUTEX_OP_CMP_EQ, 0);
    syscall(SYS_futex, &one, FUTEX_WAKE_OP, 1, 1, &two, operation);
}

static void netlink(void)
{
    struct {
        struct nlmsghdr head;
        struct ifinfomsg link;
        char left_over[3];
    } request = {.head = {.nlmsg_type = RTM_GETLINK, .nlmsg_flags = NLM_F_REQUEST}, .link = {.ifi_index = 1}};
    request.head.nlmsg_len = NLMSG_LENGTH(sizeof request.link) + sizeof request.left_over;
    send(socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE), &request, request.head.nlmsg_len, 0);
}

static void memory(void)
{
    for (;;)
        memset(malloc(1 << 20), 1, 1 << 20);
}

static const struct {
    const char *word;
    void (*go)(void);
} WAYS[] = {
    {"segfault", segfault}, {"futex", futex}, {"netlink", netlink}, {"memory", memory},
#ifdef __x86_64__
    {"divide", divide}, {"privileged", privileged}, {"vsyscall", vsyscall}, {"umip", umip},
#endif
};

int main(int count, char **words)
{
    if (count != 3 || prctl(PR_SET_NAME, words[1]))
        return 2;
    if (setgroups(0, NULL) || setgid(NOBODY) || setuid(NOBODY))
        return 2;
    for (size_t at = 0; at < sizeof WAYS / sizeof *WAYS; at++)
        if (!strcmp(words[2], WAYS[at].word)) {
            WAYS[at].go();
            return 0;
        }
    return 2;
}
