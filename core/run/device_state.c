#include "run/device_state.h"

#include "run/nvml.h"
#include "run/run.h"

static const double LOOK_S = 0.05, ENERGY_AFTER_S = 0.1;

/* NVML's bits. */
enum {
    SW_POWER_CAP = 0x4,
    HW_SLOWDOWN = 0x8,
    SW_THERMAL = 0x20,
    HW_THERMAL = 0x40,
    POWER_BRAKE = 0x80,
};

static const struct {
    unsigned long long bit;
    const char *name;
} reasons[] = {
    {0x2, "application-clocks"},  {SW_POWER_CAP, "power-cap"}, {HW_SLOWDOWN, "hw-slowdown"},
    {0x10, "sync-boost"},         {SW_THERMAL, "sw-thermal"},  {HW_THERMAL, "hw-thermal"},
    {POWER_BRAKE, "power-brake"}, {0x100, "display-clocks"},
};

static void add_clock(struct device_state *s, struct samples *to, enum nvml_clock which)
{
    const struct nvml *nvml = nvml_open();
    unsigned mhz = 0;

    if (nvml->clock != NULL && nvml->clock(s->handle, which, &mhz) == NVML_SUCCESS)
        samples_add(to, 0, mhz);
}

static bool read_energy(const struct device_state *s, unsigned long long *mj)
{
    const struct nvml *nvml = nvml_open();

    return nvml->energy != NULL && nvml->energy(s->handle, mj) == NVML_SUCCESS;
}

static void look(struct device_state *s)
{
    const struct nvml *nvml = nvml_open();
    unsigned long long bits = 0;
    unsigned number = 0;

    add_clock(s, &s->sm_mhz, NVML_CLOCK_SM);
    add_clock(s, &s->memory_mhz, NVML_CLOCK_MEMORY);
    if (nvml->temperature != NULL && nvml->temperature(s->handle, 0, &number) == NVML_SUCCESS)
        samples_add(&s->temperature_c, 0, number);
    if (nvml->power != NULL && nvml->power(s->handle, &number) == NVML_SUCCESS)
        samples_add(&s->power_w, 0, number * 1e-3);
    if (nvml->reasons != NULL && nvml->reasons(s->handle, &bits) == NVML_SUCCESS)
        s->reasons |= bits;
    s->next_s = now_s() + LOOK_S;
}

void device_state_begin(struct device_state *s, const char *uuid)
{
    *s = (struct device_state){.handle = nvml_device(uuid)};
    s->begin_s = now_s();
}

static void begin_energy(struct device_state *s)
{
    if (s->energy_start_s != 0 || now_s() < s->begin_s + ENERGY_AFTER_S)
        return;
    s->has_energy = read_energy(s, &s->energy_start_mj);
    s->energy_start_s = now_s();
}

void device_state_look(struct device_state *s)
{
    if (s->handle == NULL || now_s() < s->next_s)
        return;
    look(s);
    begin_energy(s);
}

void device_state_end(struct device_state *s)
{
    unsigned long long now_mj = 0;

    if (s->handle == NULL)
        return;
    look(s);
    s->has_energy = s->has_energy && read_energy(s, &now_mj) && now_mj >= s->energy_start_mj;
    s->energy_mj = s->has_energy ? now_mj - s->energy_start_mj : 0;
    s->energy_s = now_s() - s->energy_start_s;
}

bool device_state_is_throttled(const struct device_state *s)
{
    return (s->reasons & (SW_POWER_CAP | HW_SLOWDOWN | SW_THERMAL | HW_THERMAL | POWER_BRAKE)) != 0;
}

static void add_median(json_t *json, const char *name, const struct samples *s)
{
    if (s->count > 0)
        json_object_set_new(json, name, json_real(stats_of(s->values, s->count).median));
}

json_t *device_state_json(const struct device_state *s)
{
    const struct samples *t = &s->temperature_c;
    json_t *json, *held = json_array();

    if (s->handle == NULL) {
        json_decref(held);
        return NULL;
    }
    json = json_object();
    add_median(json, "sm_clock_mhz", &s->sm_mhz);
    add_median(json, "memory_clock_mhz", &s->memory_mhz);
    if (t->count > 0)
        json_object_set_new(json, "temperature_c", json_real(stats_of(t->values, t->count).max));
    add_median(json, "power_w", &s->power_w);
    if (s->has_energy) {
        json_object_set_new(json, "energy_j", json_real((double)s->energy_mj * 1e-3));
        json_object_set_new(json, "energy_s", json_real(s->energy_s));
    }
    for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++)
        if (s->reasons & reasons[i].bit)
            json_array_append_new(held, json_string(reasons[i].name));
    json_object_set_new(json, "throttle", held);
    return json;
}

void device_state_free(struct device_state *s)
{
    samples_free(&s->sm_mhz);
    samples_free(&s->memory_mhz);
    samples_free(&s->temperature_c);
    samples_free(&s->power_w);
}
