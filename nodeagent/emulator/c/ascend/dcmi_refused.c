/*
 * Calls that programs look up and that this library answers only with "not supported": virtual devices, ping meshes,
 * policies of several dies, and what none of the emulated products has. Their arguments are not looked at.
 */
#include "dcmi.h"

#define REFUSED(name)                                                                                                  \
    EXPORTED int name(void);                                                                                           \
    EXPORTED int name(void)                                                                                            \
    {                                                                                                                  \
        int answer = enter(__func__, -1);                                                                              \
        return answer != 0 ? answer : DCMI_ERR_NOT_SUPPORT;                                                            \
    }

REFUSED(dcmi_create_vdevice)
REFUSED(dcmi_get_device_errorcode)
REFUSED(dcmi_get_hccsping_mesh_info)
REFUSED(dcmi_get_hccsping_mesh_state)
REFUSED(dcmi_get_multi_die_policy)
REFUSED(dcmi_get_npu_work_mode)
REFUSED(dcmi_get_product_type)
REFUSED(dcmi_get_ub_ping_mesh_info)
REFUSED(dcmi_get_ub_ping_mesh_state)
REFUSED(dcmi_set_destroy_vdevice)
REFUSED(dcmi_set_multi_die_policy)
REFUSED(dcmi_set_spod_node_status)
REFUSED(dcmi_start_hccsping_mesh)
REFUSED(dcmi_start_ub_ping_mesh)
REFUSED(dcmi_stop_hccsping_mesh)
REFUSED(dcmi_stop_ub_ping_mesh)
REFUSED(dcmiv2_get_ub_ping_mesh_info)
REFUSED(dcmiv2_get_ub_ping_mesh_state)
REFUSED(dcmiv2_start_ub_ping_mesh)
REFUSED(dcmiv2_stop_ub_ping_mesh)
